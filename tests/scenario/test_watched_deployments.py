from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pytest

from cargobike import monitoring
from cargobike.core.errors import InvalidInputError, NotFoundError, WaitError
from cargobike.core.registering.tracing import Thing, all_edges
from cargobike.core.registering.triggers import look_of
from cargobike.core.signatures import Field, Signature
from cargobike.monitoring.record import read_record
from cargobike.store.files import project as projects
from support.alarm_servers import webhook_server
from support.logged_requests import logging_to
from support.watched_rows import usual

SIGNATURE = Signature((Field("age", "FP64"), Field("town", "BYTES")), (Field("old", "INT64"),))
NOW = time.time() - 3600


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Iterator[Path]:
    projects.use(tmp_path / "project")
    yield tmp_path / "project"
    projects.use(None)


def log_some(project: Path, rows: int, first: int = 0, *, moved: float = 0.0, version: int = 1) -> list[int]:
    """Log requests `r0`, `r1`, …; return what the model has answered: whether a visitor is over 40."""
    features = usual(rows, seed=first, moved=moved)
    answers = [int(age > 40) for age in features["age"]]
    with logging_to(project, {1: SIGNATURE, 2: SIGNATURE}) as log:
        for number in range(rows):
            row = {"age": float(features["age"][number]), "town": str(features["town"][number])}
            at = NOW + first + number
            log.take(f"r{first + number}", at, 0.002, version, 200, [row], [answers[number]])
    return answers


def reference() -> pd.DataFrame:
    return pd.DataFrame(usual(2000))


def test_a_deployment_is_watched_whoever_is_killed(project: Path) -> None:
    log_some(project, 130)
    with webhook_server() as posted:
        _watch_and_kill(project, monitoring.Hooks(webhook=posted.url))
    assert [body["alarm"]["id"] for body in posted.bodies] == ["alarm-1"]


def _watch_and_kill(project: Path, hooks: monitoring.Hooks) -> None:
    monitor = monitoring.watch("digits", reference(), window=50, alarm="2 of 3", detach=True, hooks=hooks)
    record = monitor.wait(60, windows=2, alarms=0)
    with pytest.raises(InvalidInputError, match=rf"digits is being watched by process {record.pid} on host .*; there"):
        monitoring.watch("digits", reference(), window=50)
    os.kill(record.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(record.pid)] if psutil.pid_exists(record.pid) else [], timeout=10)
    log_some(project, 120, 130, moved=2.0)
    monitor.start(detach=True)
    record = monitor.wait(60, windows=5, alarms=1)
    while not monitor.alarms()[0].told:
        time.sleep(0.05)
    assert monitor.stop()
    assert monitor.status().state == "stopped"
    assert [window.number for window in record.windows] == [1, 2, 3, 4, 5]
    for place, window in enumerate(record.windows):
        first, last = (round(at - NOW) for at in (window.first_at, window.last_at))
        assert (first, last, window.rows) == (50 * place, 50 * place + 49, 50), "each row counts once"
    (alarm,) = monitor.alarms(only_open=True)
    assert alarm.raised.moved[0].feature == "age"
    _look_at_alarm(monitor, project)
    assert not monitor.stop(), "nothing runs any more"
    monitor.remove()
    with pytest.raises(NotFoundError, match="There is no monitor 'digits'"):
        monitoring.monitor("digits")


def _look_at_alarm(monitor: monitoring.Monitor, project: Path) -> None:
    """Look at an alarm as a scheduler, a pipeline and a person do."""
    trigger = monitoring.drifted("digits")
    look = look_of(trigger)
    assert look(trigger, "", projects.current()).cause is None, "what was before does not set off anything"
    seen = look(trigger, "0", projects.current())
    assert seen.cause is not None
    assert json.loads(json.dumps(seen.cause)) == seen.cause
    assert (seen.cause["alarm"], seen.cause["features"], seen.mark) == ("alarm-1", ["age"], "1")
    assert look(trigger, seen.mark, projects.current()).cause is None
    assert monitoring.window_rows(seen.cause)["request_id"].to_pylist() == [
        f"r{number}" for number in range(50 * seen.cause["window"] - 50, 50 * seen.cause["window"])
    ]
    assert monitoring.window_rows(seen.cause, since=True).num_rows >= 100
    assert monitor.acknowledge(note="a new campaign", by="ada") == ["alarm-1"]
    (alarm,) = monitor.alarms()
    assert alarm.state == "acknowledged"
    assert alarm.acknowledged is not None
    assert (alarm.acknowledged.by, alarm.acknowledged.note) == ("ada", "a new campaign")
    page = monitor.report(project / "report.html").read_text()
    assert "a new campaign" in page
    assert "<script" not in page
    assert monitor.judgement(alarm.raised.window).alarm
    edges = list(all_edges(projects.current()))
    assert any(edge.made == Thing("monitor", "digits") and edge.source.kind == "deployment" for edge in edges)


def test_labels_that_come_late_say_that_errors_rose(project: Path) -> None:
    answers = log_some(project, 600)
    monitor = monitoring.watch("digits", reference(), window=200, detach=True, metrics=["error", "mae"])
    right = pa.table({"request_id": [f"r{number}" for number in range(300)], "label": answers[:300]})
    assert monitoring.labels("digits", right) == 1
    wrong = pd.DataFrame(
        {"request_id": [f"r{number}" for number in range(300, 600)], "label": [1 - one for one in answers[300:]]}
    )
    assert monitor.label(wrong) == 2
    record = monitor.wait(60, windows=3, alarms=1)
    while len(monitor.errors()) < 2:
        time.sleep(0.05)
    monitor.stop()
    first, second = monitor.errors()
    assert (first.rows, first.metrics, second.metrics) == (300, {"error": 0.0, "mae": 0.0}, {"error": 1.0, "mae": 1.0})
    alarm = next(one for one in record.alarms if one.raised.kind == "error")
    assert alarm.raised.text == "error rose from 0 to 1 where labels came."
    assert NOW + 290 < alarm.raised.since < NOW + 310
    cause = look_of(trigger := monitoring.drifted("digits", kind="drift"))(trigger, "0", projects.current()).cause
    assert cause is None, "errors are of another kind"
    monitor.start(detach=True)
    monitor.label(pa.table({"request_id": ["r1"], "label": ["not a number"]}))
    while len(monitor.errors()) < 3:
        time.sleep(0.05)
    monitor.stop()
    assert "The metric 'mae' cannot be computed of these labels" in monitor.errors()[-1].problem
    assert monitor.status().trouble == ""
    with pytest.raises(InvalidInputError, match="no column 'label'") as caught:
        monitoring.labels("digits", pa.table({"request_id": ["r1"], "lable": [1]}))
    assert "Did you mean" in str(caught.value)


def test_a_watcher_ends_with_the_process_that_it_belongs_to(project: Path) -> None:
    log_some(project, 60)
    with monitoring.watch("digits", reference(), window="1s", lateness="1s", least=1) as monitor:
        record = monitor.wait(60, windows=30, alarms=0)
        assert psutil.pid_exists(record.pid)
        with pytest.raises(WaitError, match="has not got 5 alarms within"):
            monitor.wait(0.1, alarms=5)
    assert monitor.status().state == "stopped"
    with pytest.raises(WaitError, match="is not watched any more"):
        monitor.wait(1, alarms=5)
    found = read_record(monitor.folder)
    assert found is not None
    assert all(window.rows == 1 for window in found.windows)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": "an hour"}, "window='an hour' is no length of time; write"),
        ({"alarm": "many"}, "is no policy for alarms"),
        ({"engine": "moon"}, "engine='moon' is not known"),
        ({"metrics": ["eror"]}, "'eror' is none; there are error, mae.*Did you mean"),
        ({"metrics": [lambda p, t: p]}, "cannot find it; put the function into a module"),
        ({"name": "../digits"}, "can be no name of a monitor"),
        ({"columns": ["ages"]}, "no column 'ages'"),
        ({"reference": None}, "reference=training_dataset"),
        ({"least": 0}, "least"),
    ],
)
def test_what_cannot_be_watched_is_refused_with_words(project: Path, change: dict[str, Any], words: str) -> None:
    log_some(project, 3)
    with pytest.raises(InvalidInputError, match=words):
        monitoring.watch("digits", **{"reference": reference(), "start": False, **change})
    with pytest.raises(NotFoundError, match="no deployment 'digit'"):
        monitoring.watch("digit", reference(), start=False)


def test_what_is_asked_for_anew_goes_on_where_it_was(project: Path) -> None:
    log_some(project, 120)
    first = monitoring.watch("digits", reference(), window=50)
    first.wait(60, windows=2, alarms=0)
    first.stop()
    log_some(project, 100, 120)
    with monitoring.watch("digits", reference(), window=30, columns=["age"]) as monitor:
        record = monitor.wait(60, windows=5, alarms=0)
    assert [window.number for window in record.windows] == [1, 2, 3, 4, 5]
    assert [round(window.first_at - NOW) for window in record.windows[2:]] == [120, 150, 180], "what was read is read"
    assert record.watched.columns == ("age",)
    facts = [
        line.partition('"fact":"')[2].partition('"')[0] for line in monitor.folder.journal.read_text().splitlines()
    ]
    assert [fact for fact in facts if fact.startswith("monitor")] == ["monitor-started", "monitor-changed"]


def test_another_reference_of_the_same_name_is_another_one(project: Path) -> None:
    log_some(project, 3)
    monitor = monitoring.watch("digits", reference(), window=50, start=False)
    before = monitor.folder.reference.read_bytes()
    monitoring.watch("digits", reference(), window=50, start=False)
    assert monitor.folder.reference.read_bytes() == before
    monitoring.watch("digits", pd.DataFrame(usual(2000, seed=9)), window=50, start=False)
    assert monitor.folder.reference.read_bytes() != before
    monitor.folder.reference.write_bytes(before)
    with pytest.raises(InvalidInputError, match=r"is another one than it was asked for with.*Call monitoring\.watch"):
        monitor.start()


def test_only_what_comes_is_watched_if_asked(project: Path) -> None:
    log_some(project, 100)
    monitor = monitoring.watch("digits", reference(), window=50, from_beginning=False, start=False)
    log_some(project, 50, 100)
    monitor.start()
    record = monitor.wait(60, windows=1, alarms=0)
    monitor.stop()
    assert [round(window.first_at - NOW) for window in record.windows] == [100]
    assert np.isfinite(record.windows[0].probability)
