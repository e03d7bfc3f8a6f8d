"""A monitor of a project on shared storage: the log is read from there, and what was judged is there for others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cargobike import monitoring
from cargobike.core.signatures import Field, Signature
from cargobike.store.files.storages import open_storage
from support.logged_requests import logging_to
from support.watched_rows import usual

SIGNATURE = Signature((Field("age", "FP64"), Field("town", "BYTES")), (Field("old", "INT64"),))


def test_a_monitor_lives_on_the_storage(project_there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = usual(100, seed=3, moved=2.0)
    with logging_to(project_there, {1: SIGNATURE}) as log:
        for number in range(100):
            row = {"age": float(features["age"][number]), "town": str(features["town"][number])}
            log.take(f"r{number}", time.time() + number / 100, 0.002, 1, 200, [row], [1])
    with monitoring.watch("digits", usual(1000), window=50, alarm="2 of 2") as monitor:
        record = monitor.wait(90, windows=2, alarms=1)
    assert [window.rows for window in record.windows] == [50, 50]
    assert monitor.acknowledge(by="ada") == ["alarm-1"]
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "another host"))
    there = monitoring.monitor("digits")
    assert [window.number for window in there.windows()] == [1, 2]
    assert there.alarms()[0].state == "acknowledged"
    assert there.judgement(2).alarm
    there.remove()
    assert not [entry.path for entry in open_storage(project_there).list("monitors", deep=True)]
