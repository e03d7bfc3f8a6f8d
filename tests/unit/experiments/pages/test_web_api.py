"""The REST API: what it answers, in which shape, and what it refuses."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cargobike.core.facts import ExperimentEnded, ExperimentResumed, Reported, TrialEnded, TrialSuggested
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.driving.output_files import OutputFiles
from cargobike.experiments.driving.usage_files import UsageFiles
from cargobike.store.files.locking import DriverLock
from cargobike.ui.web.access import Access
from cargobike.ui.web.roles import Role
from cargobike.workers.wire.messages import Used
from support.sample_records import HOSTILE, SPACE, Story, lively, lively_story
from support.web_project import ASKING, HOSTILE_ID, LIVELY, RUNNING, client_of, ended, sample_project, write

API = "/api/v1"
ONE = f"{API}/experiments/{LIVELY}"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectFolder:
    return sample_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def client(project: ProjectFolder) -> Iterator[TestClient]:
    with client_of(project) as found:
        yield found


def test_the_list_is_filtered_sorted_and_cut(client: TestClient) -> None:
    everything = client.get(f"{API}/experiments").json()
    assert everything["total"] == 3
    assert {each["id"] for each in everything["experiments"]} == {LIVELY, HOSTILE_ID, RUNNING}
    some = client.get(f"{API}/experiments", params={"q": "digits", "sort": "trials", "limit": 1, "offset": 1}).json()
    assert (some["total"], [each["id"] for each in some["experiments"]]) == (2, [RUNNING])
    ended = client.get(f"{API}/experiments", params={"state": ["completed", "failed"]}).json()
    assert {each["id"] for each in ended["experiments"]} == {LIVELY, HOSTILE_ID}


def test_a_summary_tells_what_the_record_knows(client: TestClient) -> None:
    record = lively()
    (told,) = client.get(f"{API}/experiments", params={"q": LIVELY}).json()["experiments"]
    assert record.best is not None
    assert told["best"] == {"trial": record.best.number, "value": record.best.value, "params": record.best.params}
    assert told["counts"] == {state.value: count for state, count in record.counts.items()}
    assert told["progress"][-1] == record.best.value
    assert told["progress"] == sorted(told["progress"])
    detail = client.get(ONE).json()
    assert detail["best"] == told["best"]
    assert detail["metrics"] == ["accuracy", "latency_ms", "duration_s"]
    assert detail["header"]["optimizer"] == "random"
    assert detail["header"]["fact"] == "experiment-started"
    assert [worker["name"] for worker in detail["workers"]] == ["w0", "w1"]


def test_trials_are_filtered_by_conditions_and_words(client: TestClient) -> None:
    def numbers(q: str, **more: str) -> list[int]:
        found = client.get(f"{ONE}/trials", params={"q": q, "limit": 1000, **more}).json()
        return [each["trial"] for each in found["trials"]]

    trials = lively().trials.values()
    assert numbers("act=relu|gelu layers<=2") == [
        each.number for each in trials if each.params["act"] in ("relu", "gelu") and each.params["layers"] <= 2
    ]
    assert numbers("state=failed") == [each.number for each in trials if each.state == "failed"]
    assert numbers("", state="stopped") == [each.number for each in trials if each.state == "stopped"]
    assert numbers('"params.momentum"=absent') == [each.number for each in trials if "momentum" not in each.params]
    assert numbers("nothing-like-it") == []
    assert numbers("silu") == [each.number for each in trials if each.params["act"] == "silu"]


@pytest.mark.parametrize(
    ("q", "says"),
    [
        ("no_such_column>3", "The filter names 'no_such_column', which no trial here has."),
        ("layer<=2", "The filter names 'layer', which no trial here has. Did you mean 'layers'?"),
        ("params.nothing=1", "The filter names 'params.nothing'"),
        ("lr<", "'lr<' in the filter compares with no number"),
        ("lr<small", "'lr<small' in the filter compares with no number"),
        ("lr<1|2", "'lr<1|2' in the filter compares with no number"),
        ('act="relu', "in the filter cannot be read"),
        ("<5", "'<5' in the filter cannot be read"),
        ("act= lr<0.1", "'act= lr<0.1' in the filter cannot be read"),
    ],
)
def test_a_filter_that_cannot_be_read_or_names_nothing_says_so(client: TestClient, q: str, says: str) -> None:
    for kind in ("trials", "trials.csv"):
        refused = client.get(f"{ONE}/{kind}", params={"q": q})
        assert refused.status_code == 422
        assert says in refused.json()["detail"]


@pytest.mark.parametrize(
    ("q", "same"),
    [
        ("layers <= 2", "layers<=2"),
        ("accuracy>0.5", "value>0.5"),
        ("params.act = relu", "act=relu"),
        ('act = "relu" | x', None),
    ],
)
def test_blanks_around_signs_do_not_matter(client: TestClient, q: str, same: str | None) -> None:
    answers = [client.get(f"{ONE}/trials", params={"q": each, "limit": 1000}) for each in (q, same or "act=relu | x")]
    found = [[each["trial"] for each in answer.json()["trials"]] for answer in answers]
    assert found[0] == found[1]
    assert same is None or found[0]


def test_tags_notes_and_marks_are_added_and_taken_away(tmp_path: Path) -> None:
    with client_of(sample_project(tmp_path)) as client:
        added = client.post(
            f"{ONE}/annotations",
            json={"add": ["baseline"], "note": "worth it", "marks": {"3": "star", "4": "hidden"}},
            headers=ASKING,
        ).json()
        assert (added["tags"], added["marks"]) == (["baseline"], {"3": "star", "4": "hidden"})
        assert [note["text"] for note in added["notes"]] == ["worth it"]
        assert client.get(ONE).json()["tags"] == ["baseline"]
        listed = client.get(f"{ONE}/trials", params={"limit": 1000}).json()
        assert (listed["total"], listed["all"], listed["marks"]) == (39, 40, {"3": "star", "4": "hidden"})
        assert 4 not in [each["trial"] for each in listed["trials"]]
        marked = client.get(f"{ONE}/trials", params={"q": "mark=star|hidden"}).json()
        assert [each["trial"] for each in marked["trials"]] == [3, 4]
        page = client.get(f"/experiments/{LIVELY}/trials/3").text
        assert 'data-mark="star" aria-pressed="true"' in page
        removed = client.post(
            f"{ONE}/annotations", json={"remove": ["baseline"], "marks": {"4": None}}, headers=ASKING
        ).json()
        assert (removed["tags"], removed["marks"]) == ([], {"3": "star"})
        assert client.get(f"{ONE}/trials").json()["total"] == 40


def test_hidden_trials_are_left_out_of_figures_and_best_and_counted(tmp_path: Path) -> None:
    with client_of(sample_project(tmp_path)) as client:
        before = client.get(f"{ONE}/figures/best-so-far")
        best = client.get(ONE).json()["best"]["trial"]
        client.post(f"{ONE}/annotations", json={"marks": {str(best): "hidden"}}, headers=ASKING)
        tag = {"if-none-match": before.headers["etag"]}
        after = client.get(f"{ONE}/figures/best-so-far", headers=tag)
        assert after.status_code == 200, "what is hidden changes the figure's tag"
        assert "without 1 hidden trial" in after.text
        detail = client.get(ONE).json()
        assert (detail["hidden"], detail["trials"]) == (1, 40)
        assert detail["best"]["trial"] != best
        listed = client.get(f"{ONE}/trials").json()
        assert (listed["hidden"], listed["best"]) == (1, detail["best"]["trial"])
        page = client.get(f"/experiments/{LIVELY}").text
        assert "1 hidden, left out of figures" in page
        assert f'/trials/{detail["best"]["trial"]}">trial {detail["best"]["trial"]}</a>' in page


def test_a_changed_space_is_told(tmp_path: Path) -> None:
    project = sample_project(tmp_path)
    wider = [{**SPACE.describe()[0], "high": 9.0}, *SPACE.describe()[1:]]
    story = lively_story()
    facts = [*ended(story), ExperimentResumed(at=story.tick(), num_trials=50, space=wider)]
    write(project.experiment("20260102-000000-wide"), facts)
    with client_of(project) as client:
        (change,) = client.get(f"{API}/experiments/20260102-000000-wide").json()["space_changes"]
        assert (change["after_trials"], change["space"]) == (40, wider)
        assert change["before"] == SPACE.describe()
        assert len(change["changed"]) == 1
        page = client.get("/experiments/20260102-000000-wide", params={"fragment": True}).text
        assert "space changed" in page
        assert f"after 40 trials: {change['changed'][0]}" in page
        assert client.get(ONE).json()["space_changes"] == []


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"marks": {"999": "star"}}, 404, "There is no trial 999"),
        ({"marks": {"1": "best"}}, 422, "star"),
        ({"add": [" x"]}, 422, "cannot be a tag"),
        ({"note": 5}, 422, "string"),
    ],
)
def test_what_cannot_be_added_is_refused(client: TestClient, body: dict[str, object], status: int, says: str) -> None:
    refused = client.post(f"{ONE}/annotations", json=body, headers=ASKING)
    assert refused.status_code == status
    assert says in refused.text


def test_a_server_that_only_shows_adds_nothing(project: ProjectFolder) -> None:
    with client_of(project, Access(most=Role.READ)) as client:
        refused = client.post(f"{ONE}/annotations", json={"note": "x"}, headers=ASKING)
        assert refused.status_code == 403
        assert "data-annotate" not in client.get(f"/experiments/{LIVELY}").text
        assert "data-mark" not in client.get(f"/experiments/{LIVELY}/trials/1").text
    with client_of(project) as client:
        foreign = client.post(f"{ONE}/annotations", json={"note": "x"}, headers={"content-type": "application/json"})
        assert foreign.status_code == 403
    assert not project.experiment(LIVELY).annotations.exists()


def test_the_page_of_a_failed_experiment_shows_why_as_it_was_written(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    story = Story(SPACE, num_trials=3)
    story.join("w0")
    number = story.start({"lr": 0.1})
    story.fail(number)
    reason = "the first 3 trials all failed alike:\nTraceback (most recent call last):\n  File x\nValueError: <b>no</b>"
    write(project.experiment(LIVELY), [*story.facts, ExperimentEnded(at=story.tick(), state="failed", reason=reason)])
    no_trial = [Story(SPACE).facts[0], ExperimentEnded(at=2e9, state="failed", reason="No worker came:\n  line 2")]
    write(project.experiment(RUNNING), no_trial)
    with client_of(project) as client:
        page = client.get(f"/experiments/{LIVELY}?fragment=true").text
        assert "the first 3 trials all failed alike: <code>ValueError: &lt;b&gt;no&lt;/b&gt;</code></p>" in page
        assert 'aria-label="Why it ended">  line 2</pre>' in client.get(f"/experiments/{RUNNING}?fragment=true").text


def test_what_never_ran_is_not_called_pending_once_all_has_ended(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    for experiment_id, is_over in ((LIVELY, True), (RUNNING, False)):
        story = lively_story(3)
        facts = [*story.facts, TrialSuggested(at=story.tick(), trial=3, params={"lr": 0.1}, seed=1)]
        end = [ExperimentEnded(at=story.tick(), state="completed")] if is_over else []
        write(project.experiment(experiment_id), [*facts, *end])
    with client_of(project) as client, DriverLock(project.experiment(RUNNING)):
        over = client.get(f"/experiments/{LIVELY}?fragment=true").text
        assert "1 not run" in over
        assert "pending</span>" not in over
        assert "not run" in client.get(f"/experiments/{LIVELY}/trials/3").text
        assert "1 pending" in client.get(f"/experiments/{RUNNING}?fragment=true").text


def test_trials_are_sorted_with_those_without_a_value_last(client: TestClient) -> None:
    found = client.get(f"{ONE}/trials", params={"sort": "value", "descending": True, "limit": 1000}).json()
    values = [each["value"] for each in found["trials"]]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=True)
    assert values == known + [None] * (len(values) - len(known))
    assert found["trials"][0]["trial"] == found["best"]
    wrong = client.get(f"{ONE}/trials", params={"sort": "colour"})
    assert wrong.status_code == 422
    assert wrong.json()["mistakes"][0]["where"] == ["query", "sort"]
    assert wrong.json()["detail"].startswith("The request cannot be used: query.sort: ")
    nobody = client.get(f"{ONE}/trials", params={"sort": "params.nobody", "limit": 1000}).json()
    assert [each["trial"] for each in nobody["trials"]] == list(range(40))


def test_a_page_of_trials_says_how_many_there_are(client: TestClient) -> None:
    found = client.get(f"{ONE}/trials", params={"offset": 38, "limit": 10}).json()
    assert [each["trial"] for each in found["trials"]] == [38, 39]
    assert (found["total"], found["all"]) == (40, 40)


def test_the_table_as_csv_holds_no_formulas(client: TestClient) -> None:
    answer = client.get(f"{API}/experiments/{HOSTILE_ID}/trials.csv")
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 14
    assert any(value == HOSTILE for row in rows for value in row.values())
    calm = list(csv.DictReader(io.StringIO(client.get(f"{ONE}/trials.csv").text)))
    assert [float(row["params.lr"]) for row in calm] == [trial.params["lr"] for trial in lively().trials.values()]


def test_what_a_trial_returned_besides_numbers_is_told_and_shown(tmp_path: Path) -> None:
    project, story = sample_project(tmp_path), lively_story(1)
    number, extras = story.start({"lr": 0.1}), {"path": HOSTILE, "classes": [1, 2]}
    story.add(TrialEnded(at=story.tick(), trial=number, state="completed", value=0.5, extras=extras))
    write(project.experiment("20270115-080003-more"), story.facts)
    with client_of(project) as client:
        told = client.get(f"{API}/experiments/20270115-080003-more/trials/1").json()
        assert told["extras"] == {"path": HOSTILE, "classes": [1, 2]}
        page = client.get("/experiments/20270115-080003-more/trials/1").text
        assert "also returned" in page
        assert "[1, 2]" in page
        assert HOSTILE not in page


def test_one_trial_is_told_with_its_attempts(client: TestClient) -> None:
    told = client.get(f"{ONE}/trials/3").json()
    assert [each["ended"] for each in told["tries"]] == ["worker w0 was killed", "stopped"]
    assert told["metric_names"] == ["accuracy"]
    failed = client.get(f"{ONE}/trials/5").json()
    assert failed["error"] == "Traceback\nValueError: no"
    missing = client.get(f"{ONE}/trials/4000")
    assert missing.status_code == 404
    assert "it has trials 0 to 39" in missing.json()["detail"]


def test_metrics_are_down_sampled_and_keep_their_ends(tmp_path: Path) -> None:
    project = sample_project(tmp_path)
    folder = project.experiment(RUNNING)
    points = [
        Reported(at=1.8e9, trial=0, step=step, metrics={"accuracy": math.sin(step / 50), "loss": 1.0 / (step + 1)})
        for step in range(5000)
    ]
    write(folder, points)
    with client_of(project) as client:
        address = f"{API}/experiments/{RUNNING}/trials/0/metrics"
        for method in ("lttb", "minmax"):
            told = client.get(address, params={"points": 100, "method": method}).json()
            assert [each["name"] for each in told["metrics"]] == ["accuracy", "loss"]
            for curve in told["metrics"]:
                assert curve["total"] == 5000
                assert 50 < len(curve["steps"]) <= 100
                assert (curve["steps"][0], curve["steps"][-1]) == (0, 4999)
                assert curve["steps"] == sorted(set(curve["steps"]))
        (loss,) = client.get(address, params={"points": 100_000, "name": "loss"}).json()["metrics"]
        assert loss["values"] == [1.0 / (step + 1) for step in range(5000)]


def test_logs_are_followed_from_where_the_last_part_ended(tmp_path: Path) -> None:
    project = sample_project(tmp_path)
    place = project.experiment(RUNNING).trial(11)
    place.stdout.parent.mkdir(parents=True)
    text = "".join(f"line {number}: 𝛼 → ü\n" for number in range(200))
    with DriverLock(project.experiment(RUNNING)), client_of(project) as client:
        address = f"{API}/experiments/{RUNNING}/trials/11/logs/stdout"
        assert client.get(address).json()["size"] == 0
        data = text.encode()
        place.stdout.write_bytes(data[:1001])  # in the middle of a character
        read, offset = "", 0
        for end in (1001, 2002, len(data)):
            place.stdout.write_bytes(data[:end])
            while (part := client.get(address, params={"offset": offset, "limit": 100}).json())["text"]:
                read, offset = read + part["text"], part["next_offset"]
        assert read == text
        tail = client.get(address, params={"offset": -50}).json()
        assert text.endswith(tail["text"])
        assert tail["text"].startswith("line")
    stranger = project.experiment(RUNNING).trial(3).stderr
    stranger.parent.mkdir(parents=True)
    stranger.symlink_to("/etc/passwd")
    with client_of(project) as client:
        assert client.get(f"{API}/experiments/{RUNNING}/trials/3/logs/stderr").json()["text"] == ""


@pytest.mark.parametrize("name", ["best-so-far", "learning-curves", "pareto", "parallel-coordinates", "importance",
                                  "slices", "contour", "timeline"])  # fmt: skip
def test_figures_are_those_of_the_result(client: TestClient, name: str) -> None:
    listed = client.get(f"{ONE}/figures").json()["figures"]
    assert name in [each["name"] for each in listed]
    answer = client.get(f"{ONE}/figures/{name}")
    assert answer.status_code == 200
    spec = answer.json()
    assert spec["data"]
    assert spec["layout"]["title"]["text"]
    again = client.get(f"{ONE}/figures/{name}", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_figure_that_is_none_is_not_found(client: TestClient) -> None:
    missing = client.get(f"{ONE}/figures/best-so-fra")
    assert missing.status_code == 404
    assert "Did you mean 'best-so-far'?" in missing.json()["detail"]
    wrong = client.get(f"{ONE}/figures/contour", params={"x": "lrr"})
    assert wrong.status_code == 404
    assert "'lrr' is not a parameter that varies" in wrong.json()["detail"]


def test_what_a_driver_writes_is_seen_at_once(tmp_path: Path) -> None:
    project = sample_project(tmp_path)
    folder = project.experiment(RUNNING)
    with DriverLock(folder), client_of(project) as client:
        address = f"{API}/experiments/{RUNNING}"
        before = client.get(address).json()
        assert (before["state"], before["may_stop"]) == ("running", True)
        etag = client.get(f"{address}/figures/best-so-far").headers["etag"]
        write(folder, [ExperimentEnded(at=1.8e9 + 9999, state="completed", reason="enough")])
        after = client.get(address).json()
        assert (after["state"], after["reason"], after["may_stop"]) == ("completed", "enough", False)
        assert after["version"] > before["version"]
        changed = client.get(f"{address}/figures/best-so-far", headers={"if-none-match": etag})
        assert changed.status_code == 200


def test_an_experiment_without_a_driver_is_lost(client: TestClient) -> None:
    assert client.get(f"{API}/experiments/{RUNNING}").json()["state"] == "lost"


def test_events_begin_with_what_is(client: TestClient) -> None:
    one = client.get(f"{API}/events", params={"experiment": LIVELY, "once": True})
    assert one.headers["content-type"].startswith("text/event-stream")
    assert one.text.startswith("event: experiment\ndata: {")
    everything = client.get(f"{API}/events", params={"once": True})
    assert '"total":3' in everything.text
    assert client.get(f"{API}/events", params={"experiment": "20270115-080009-none"}).status_code == 404


def test_stopping_leaves_the_request_that_a_driver_looks_for(tmp_path: Path) -> None:
    project = sample_project(tmp_path)
    folder = project.experiment(RUNNING)
    with DriverLock(folder), client_of(project) as client:
        told = client.post(f"{API}/experiments/{RUNNING}/stop", headers=ASKING)
        assert (told.status_code, told.json()["was_running"]) == (202, True)
        assert folder.stop_request.exists()
    with client_of(project) as client:
        told = client.post(f"{API}/experiments/{LIVELY}/stop", headers=ASKING)
        assert told.json() == {"id": LIVELY, "state": "completed", "was_running": False}
        assert not project.experiment(LIVELY).stop_request.exists()
    with client_of(project, Access(most=Role.READ)) as client:
        assert client.post(f"{API}/experiments/{RUNNING}/stop", headers=ASKING).status_code == 403


def test_trials_and_experiments_are_compared(client: TestClient) -> None:
    refs = {"trial": [f"{LIVELY}/0", f"{LIVELY}/1", f"{HOSTILE_ID}/0"]}
    told = client.get(f"{API}/compare/trials", params=refs).json()["trials"]
    assert [each["trial"]["trial"] for each in told] == [0, 1, 0]
    curves = client.get(f"{API}/compare/figures/curves", params={**refs, "metric": "accuracy"}).json()
    assert [trace["name"] for trace in curves["data"]] == ["digits · trial 0", "digits · trial 1"]
    both = {"experiment": [LIVELY, HOSTILE_ID]}
    progress = client.get(f"{API}/compare/figures/best-so-far", params=both).json()
    assert len(progress["data"]) == 2
    assert "<script" not in str(progress)
    assert client.get(f"{API}/compare/trials", params={"trial": "../../etc/1"}).status_code == 422


def test_files_stay_inside_the_experiment(tmp_path: Path) -> None:
    project = sample_project(tmp_path / "project")
    root = project.experiment(LIVELY).root
    (tmp_path / "secret").write_text("secret")
    (root / "code").mkdir()
    (root / "code" / "train.py").write_text("print('<script>')\n")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "way").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    with client_of(project) as client:
        entries = {each["name"]: each["kind"] for each in client.get(f"{ONE}/files").json()["entries"]}
        assert entries == {"code": "folder", "journal.jsonl": "file", "link": "other", "way": "other", "pipe": "other"}
        answer = client.get(f"{ONE}/files/content", params={"path": "code/train.py"})
        assert answer.text == "print('<script>')\n"
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''train.py"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        for path in ("../../../secret", "/etc/passwd", "code/../../secret", "a\\..\\b", "code/\0"):
            assert client.get(f"{ONE}/files/content", params={"path": path}).status_code == 404, path
        for path in ("link", "way/secret", "pipe", "code", "nothing", "journal.jsonl/x"):
            answer = client.get(f"{ONE}/files/content", params={"path": path})
            assert answer.status_code == 404, path
            assert "secret" not in answer.text.replace(path, "")


def test_an_unknown_experiment_and_a_damaged_one(tmp_path: Path) -> None:
    project = sample_project(tmp_path)
    journal = project.experiment(LIVELY).journal
    lines = journal.read_bytes().split(b"\n")
    lines[10] = lines[10].replace(b"trial", b"trail")
    journal.write_bytes(b"\n".join(lines))
    with client_of(project) as client:
        assert client.get(f"{API}/experiments/20270115-080009-none").status_code == 404
        damaged = client.get(ONE)
        assert damaged.status_code == 503
        assert "line 11: damaged" in damaged.json()["detail"]
        rows = client.get(f"{API}/experiments").json()["experiments"]
        assert [bool(row["problem"]) for row in rows if row["id"] == LIVELY] == [True]


def test_what_a_trial_used_is_told_and_drawn(tmp_path: Path) -> None:
    project = sample_project(tmp_path)
    files = UsageFiles(project.experiment(LIVELY), OutputFiles())
    files.keep(Used(1, 1, 1.0, 9.0, 9_000_000), 0)
    for second in (1.0, 2.0):
        files.keep(Used(1, 2, second, 1.5, 200_000_000), 0)
    with client_of(project) as client:
        told = client.get(f"{ONE}/trials/1/usage").json()
        assert (told["peak_memory_bytes"], told["mean_gpu"], len(told["samples"])) == (200_000_000, None, 3)
        assert told["summary"].endswith("200 MB")
        drawn = client.get(f"{ONE}/trials/1/figures/usage").json()
        assert next(line["y"] for line in drawn["data"]) == [1.5, 1.5], "the newest attempt"
        assert client.get(f"{ONE}/trials/2/usage").json()["samples"] == []
