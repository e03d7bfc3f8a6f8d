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

from cargobike.core.facts import ExperimentEnded, Reported
from cargobike.core.layout import ProjectFolder
from cargobike.store.files.locking import DriverLock
from cargobike.ui.web.access import Access
from support.sample_records import HOSTILE, lively
from support.web_project import ASKING, HOSTILE_ID, LIVELY, RUNNING, client_of, sample_project, write

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
    assert numbers("no_such_column>3") == []
    assert numbers("silu") == [each.number for each in trials if each.params["act"] == "silu"]


def test_trials_are_sorted_with_those_without_a_value_last(client: TestClient) -> None:
    found = client.get(f"{ONE}/trials", params={"sort": "value", "descending": True, "limit": 1000}).json()
    values = [each["value"] for each in found["trials"]]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=True)
    assert values == known + [None] * (len(values) - len(known))
    assert found["trials"][0]["trial"] == found["best"]
    wrong = client.get(f"{ONE}/trials", params={"sort": "colour"})
    assert wrong.status_code == 422
    assert wrong.json()["detail"][0]["where"] == ["query", "sort"]
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
    with client_of(project, Access(may_stop=False)) as client:
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
