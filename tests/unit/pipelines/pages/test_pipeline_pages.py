"""The pages of pipelines, the answers behind them, and what is asked for there; lineage of what runs have made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cargobike import features, pipelines, project
from cargobike.core.registering.tracing import Thing, all_edges, page_of
from cargobike.pipelines.facts import (
    AnyRunFact,
    AttemptEnded,
    RunEnded,
    RunStarted,
    RunState,
    StepAsked,
    StepEnded,
    StepKind,
    StepStarted,
    StepState,
)
from cargobike.pipelines.pages.answers import RunDetails, RunPage, ScheduleList, StepDetails, StepOutput
from cargobike.pipelines.pages.drawing import MOST_NODES
from cargobike.pipelines.record import RunFolder, folder_of
from cargobike.pipelines.values.value import Value
from cargobike.store.files.locking import DriverLock
from cargobike.store.journal.journal import JournalWriter
from cargobike.ui.web.access import Access
from cargobike.ui.web.answering import model_of
from cargobike.ui.web.roles import Role
from support.dashboard_site import HOSTILE
from support.web_project import ASKING, client_of

MODEL = Value("kept", thing=("model", "digits:3"))
GROUP = Value("kept", thing=("group", "teams:1"))


def write_run(run: str, facts: list[AnyRunFact], *, at: float = 100.0, **said: Any) -> RunFolder:
    folder = folder_of(project.prepare(), run)
    folder.root.mkdir(parents=True)
    with JournalWriter(folder.journal) as journal:
        journal.append([RunStarted(at=at, id=run, **{"pipeline": "retrain", **said}), *facts])
    return folder


def step(
    number: int,
    name: str,
    result: Value | None = None,
    *,
    state: StepState = StepState.COMPLETED,
    **said: Any,
) -> list[AnyRunFact]:
    asked = StepAsked(at=100.0 + number, step=number, name=name, **said)
    begun = StepStarted(at=100.5 + number, step=number)
    error = f"Traceback\nValueError: {HOSTILE}" if state.has_raised else ""
    ended = StepEnded(at=101.0 + number, step=number, state=state, result=result, error=error, seconds=0.5)
    return [asked, begun, ended]


@pytest.fixture
def run() -> RunFolder:
    """A run of six steps, of which the last one failed."""
    facts = [
        *step(1, "load", Value("plain", data=12)),
        *step(2, HOSTILE, inputs={"given": Value("step", data=1), "<b>": Value("plain", data=HOSTILE)}, after=(1,)),
        *step(3, "models.register", MODEL, kind=StepKind.OWN),
        *step(4, "version.promote", Value("plain", data=1), kind=StepKind.OWN, inputs={"self": MODEL}),
        *step(5, "group.insert", Value("plain", data=1), kind=StepKind.OWN, inputs={"self": GROUP}),
        *step(6, "fails", state=StepState.FAILED),
    ]
    facts.insert(2, AttemptEnded(at=101.0, step=1, attempt=1, error="the first time"))
    facts.append(RunEnded(at=110.0, state=RunState.FAILED, error="Traceback\nValueError: all is lost", failed=(6,)))
    cause = {"schedule": "nightly", "kind": "drifted", "monitor": "digits", "alarm": "7", "text": "budget moved"}
    folder = write_run("run-1", facts, function="retrain.py:retrain", params={"lr": 0.1}, cause=cause)
    folder.step(2).mkdir(parents=True)
    folder.output(2, "stdout").write_text(f"first\n{HOSTILE}\n")
    return folder


@pytest.fixture
def client(run: RunFolder) -> TestClient:
    return client_of(project.current())


def test_runs_are_listed_the_newest_first_and_found(client: TestClient) -> None:
    write_run("later", [RunEnded(at=300.0, state=RunState.COMPLETED)], at=200.0, pipeline="evaluate")
    answer = client.get("/api/v1/pipelines/runs").json()
    model_of(RunPage).model_validate(answer)
    assert [(one["run"], one["state"]) for one in answer["runs"]] == [("later", "completed"), ("run-1", "failed")]
    assert [(one["pipeline"], one["runs"]) for one in answer["pipelines"]] == [("evaluate", 1), ("retrain", 1)]
    assert answer["runs"][1]["cause"] == "nightly · drifted · budget moved"
    assert answer["runs"][1]["error"] == "ValueError: all is lost"
    assert client.get("/api/v1/pipelines/runs", params={"pipeline": "evaluate"}).json()["total"] == 1
    assert client.get("/api/v1/pipelines/runs", params={"words": "run-"}).json()["total"] == 1
    assert client.get("/api/v1/pipelines/runs", params={"offset": 1, "limit": 1}).json()["runs"][0]["run"] == "run-1"
    page = client.get("/pipelines").text
    assert page.index("later") < page.index("run-1")


def test_a_run_that_was_seen_before_its_first_line_was_written_is_found_by_its_pipeline(client: TestClient) -> None:
    folder = folder_of(project.prepare(), "fresh")
    folder.root.mkdir(parents=True)
    folder.journal.touch()
    listed = {one["run"]: one["pipeline"] for one in client.get("/api/v1/pipelines/runs").json()["runs"]}
    assert listed == {"run-1": "retrain", "fresh": ""}
    with JournalWriter(folder.journal) as journal:
        journal.append([RunStarted(at=500.0, id="fresh", pipeline="retrain")])
    found = client.get("/api/v1/pipelines/runs", params={"pipeline": "retrain"}).json()["runs"]
    assert [one["run"] for one in found] == ["fresh", "run-1"]


def test_a_run_that_changed_is_read_again_and_a_damaged_one_is_said(client: TestClient, run: RunFolder) -> None:
    running = write_run("now", step(1, "waits")[:2], at=400.0)
    with DriverLock(running):
        newest = client.get("/api/v1/pipelines/runs").json()["runs"][0]
        assert (newest["state"], newest["steps"]) == ("running", {"running": 1})
        assert client.get("/api/v1/pipelines/runs/now").json()["steps"][0]["seconds"] > 1000
    newest = client.get("/api/v1/pipelines/runs").json()["runs"][0]
    assert (newest["state"], newest["steps"]) == ("interrupted", {"interrupted": 1})
    assert client.get("/api/v1/pipelines/runs/now").json()["steps"][0]["state"] == "interrupted"
    run.journal.write_bytes(b"{}\n")
    broken = client_of(project.current()).get("/api/v1/pipelines/runs").json()["runs"]
    assert {one["run"]: one["state"] for one in broken} == {"now": "interrupted", "run-1": "unreadable"}


def test_a_run_has_its_steps_what_they_needed_and_links_to_things(client: TestClient) -> None:
    answer = client.get("/api/v1/pipelines/runs/run-1").json()
    model_of(RunDetails).model_validate(answer)
    assert [one["needs"] for one in answer["steps"]] == [[], [1], [], [3], [], []]
    assert answer["steps"][2]["result"]["page"] == page_of(Thing("model", "digits", "3")) == "/models/digits/3"
    assert answer["params"] == {"lr": 0.1}
    assert answer["may_resume"]
    assert not answer["may_cancel"]
    page = client.get("/pipelines/runs/run-1").text
    assert '<svg class="graph"' in page
    assert '<svg class="gantt"' in page
    assert "<script>" not in page.replace('<script src="/static/theme.js"></script>', "")
    fragment = client.get("/pipelines/runs/run-1", params={"fragment": True}).text
    assert fragment.lstrip().startswith('<div data-run-state="failed">')


def test_a_step_has_what_it_was_given_returned_and_printed(client: TestClient) -> None:
    answer = client.get("/api/v1/pipelines/runs/run-1/steps/2").json()
    model_of(StepDetails).model_validate(answer)
    assert answer["inputs"][0]["page"] == "/pipelines/runs/run-1/steps/1"
    printed = client.get("/api/v1/pipelines/runs/run-1/steps/2/output").json()
    model_of(StepOutput).model_validate(printed)
    assert printed["stdout"].startswith("first\n")
    assert client.get("/api/v1/pipelines/runs/run-1/steps/1").json()["failures"] == ["the first time"]
    for number in range(1, 7):
        page = client.get(f"/pipelines/runs/run-1/steps/{number}").text
        assert HOSTILE not in page
    assert "ValueError" in page


@pytest.mark.parametrize(
    "path", ["runs/nothing", "runs/..%2f..%2fetc", "runs/run-1/steps/99", "runs/run-1/steps/99/output"]
)
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    answer = client.get(f"/api/v1/pipelines/{path}")
    assert answer.status_code == 404
    assert client.get(f"/pipelines/{path}").status_code == 404


def test_a_run_is_cancelled_and_resumed_only_where_that_is_allowed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, dict[str, Any]]] = []

    class Process:
        def poll(self) -> int:
            return 0

    class Started:
        process = Process()

    def start(function: str, **said: Any) -> Started:
        started.append((function, said))
        return Started()

    monkeypatch.setattr("cargobike.pipelines.pages.section.start", start)
    running = write_run("now", [], at=400.0, function="retrain.py:retrain")
    in_memory = write_run("gone", [RunEnded(at=500.0, state=RunState.FAILED)], at=450.0)
    with DriverLock(running):
        assert client.post("/api/v1/pipelines/runs/now/cancel", headers=ASKING, content="{}").status_code == 202
        assert running.stop_request.exists()
        refused = client.post("/api/v1/pipelines/runs/now/resume", headers=ASKING, content="{}")
        assert (refused.status_code, refused.json()["detail"]) == (
            409,
            "Run now cannot be resumed here: it is running.",
        )
    assert client.post("/api/v1/pipelines/runs/run-1/cancel", headers=ASKING, content="{}").status_code == 409
    refused = client.post(f"/api/v1/pipelines/runs/{in_memory.id}/resume", headers=ASKING, content="{}")
    assert "its function is in no file" in refused.json()["detail"]
    assert started == []
    assert client.post("/api/v1/pipelines/runs/run-1/resume", headers=ASKING, content="{}").status_code == 202
    assert [(function, said["run_id"], said["resume"]) for function, said in started] == [
        ("retrain.py:retrain", "run-1", True)
    ]
    assert client.post("/api/v1/pipelines/runs/run-1/resume", content="{}").status_code in {403, 415}
    read_only = client_of(project.current(), Access(most=Role.READ))
    assert read_only.post("/api/v1/pipelines/runs/run-1/resume", headers=ASKING, content="{}").status_code == 403
    assert "data-resume" not in read_only.get("/pipelines/runs/run-1").text


def nightly() -> None:
    """A pipeline that can be found again."""


def test_schedules_are_listed_with_what_became_of_them(client: TestClient) -> None:
    assert "Schedules" not in client.get("/pipelines").text
    features.create_group("teams", key="team_id")
    pipelines.schedule(nightly, cron="0 3 * * *", when=[features.changed("teams")], name="every-night")
    pipelines.schedule(nightly, every="1d", name="rests").pause()
    answer = client.get("/api/v1/pipelines/schedules").json()
    model_of(ScheduleList).model_validate(answer)
    assert [(one["schedule"], one["is_paused"]) for one in answer["schedules"]] == [
        ("every-night", False),
        ("rests", True),
    ]
    assert answer["schedules"][0]["words"] == "0 3 * * * (UTC) or when teams changed"
    assert answer["schedules"][0]["next_at"].endswith("03:00:00.000+00:00")
    assert answer["schedules"][1]["next_at"] is None
    page = client.get("/pipelines").text
    assert page.index("every-night") < page.index("run-1")


def test_many_steps_are_drawn_by_their_names(tmp_path: Path) -> None:
    count = MOST_NODES + 50
    facts = [*step(1, "load", Value("plain", data=1))]
    for number in range(2, count):
        facts += step(number, "train", Value("plain", data=1), after=(1,), inputs={"x": Value("step", data=1)})
    facts += step(count, "choose", after=(2, 3), state=StepState.FAILED)
    write_run("many", facts)
    client = client_of(project.current())
    page = client.get("/pipelines/runs/many").text
    assert "Graph of 3 steps" in page
    assert f"{count - 2} completed" in page
    assert json.loads(client.get("/api/v1/pipelines/runs/many", params={"limit": 1}).text)["total"] == count


def test_what_a_gate_has_refused_does_not_look_like_a_failure(tmp_path: Path) -> None:
    facts = [*step(1, "version.promote", state=StepState.REFUSED), *step(2, "fails", state=StepState.FAILED)]
    write_run("gated", [*facts, RunEnded(at=110.0, state=RunState.COMPLETED)])
    client = client_of(project.current())
    answer = client.get("/api/v1/pipelines/runs/gated").json()
    assert [one["state"] for one in answer["steps"]] == ["refused", "failed"]
    assert answer["run"]["steps"] == {"refused": 1, "failed": 1}
    rows = client.get("/pipelines/runs/gated").text.partition("<tbody>")[2].split("</tr>")
    assert ["problem" in row for row in rows[:2]] == [False, True]
    refused, failed = (client.get(f"/pipelines/runs/gated/steps/{number}").text for number in (1, 2))
    assert ">Decision</h2>" in refused
    assert "output error" not in refused
    assert ">Error</h2>" in failed


def test_what_a_run_made_and_what_set_it_off_is_lineage(run: RunFolder) -> None:
    made = {(str(edge.made), str(edge.source), edge.relation, edge.detail) for edge in all_edges(project.current())}
    assert made == {
        ("model digits:3", "pipeline retrain:run-1", "made from", "step 3"),
        ("model digits:3", "pipeline retrain:run-1", "made from", "promoted"),
        ("group teams:1", "pipeline retrain:run-1", "made from", "rows inserted"),
        ("pipeline retrain:run-1", "monitor digits", "triggered by", "alarm 7"),
    }
    assert page_of(Thing("pipeline", "retrain", "run-1")) == "/pipelines/runs/run-1"
    shown = client_of(project.current()).get("/lineage/pipeline/retrain:run-1")
    assert shown.status_code == 200
    assert "digits:3" in shown.text
    write_run("by-commit", [], cause={"group": "teams", "version": 2, "commits": [4, 5]})
    write_run("by-table", [], cause={"table": "numbers", "versions": [3]})
    causes = {(str(edge.source), edge.detail) for edge in all_edges(project.current()) if edge.relation != "made from"}
    assert causes == {("monitor digits", "alarm 7"), ("group teams:2", "commit 5"), ("table numbers:3", "")}
