"""The pages of monitors and the answers behind them, and alarms that are acknowledged there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from cargobike import monitoring, project
from cargobike.core.layout import ProjectFolder
from cargobike.monitoring.facts import MonitorStarted, Watched, WindowChoice, WindowJudged
from cargobike.monitoring.pages.answers import AlarmAnswer, ErrorPage, MonitorDetails, MonitorPage, WindowPage
from cargobike.monitoring.record import folder_of
from cargobike.store.journal.journal import JournalReader, JournalWriter
from cargobike.ui.web.access import Access
from cargobike.ui.web.answering import model_of
from cargobike.ui.web.roles import Role
from support.watched_monitors import HOSTILE_NAME, make_monitor
from support.watched_rows import START
from support.web_project import ASKING, client_of


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    project.use(folder)
    try:
        make_monitor(project.current(), extra=(HOSTILE_NAME,))
        make_monitor(project.current(), "calm", quiet=2, moved=0)
    finally:
        project.use(None)
    return folder


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    project.use(root)
    yield client_of(project.current())
    project.use(None)


def test_monitors_with_open_alarms_are_listed_first(client: TestClient) -> None:
    answer = client.get("/api/v1/monitors").json()
    model_of(MonitorPage).model_validate(answer)
    assert [(line["name"], line["open_alarms"], line["unusual"]) for line in answer["monitors"]] == [
        ("digits", 1, True),
        ("calm", 0, False),
    ]
    page = client.get("/monitors").text
    assert '<a href="/monitors" aria-current="page">Monitors</a>' in page
    assert '<a href="/monitors/digits">digits</a>' in page
    assert client.get("/api/v1/monitors", params={"words": "calm"}).json()["total"] == 1
    assert "No monitor has this in its words" in client.get("/monitors", params={"words": "none"}).text


def test_one_monitor_says_what_moved_and_keeps_secrets(client: TestClient) -> None:
    answer = client.get("/api/v1/monitors/digits")
    model_of(MonitorDetails).model_validate(answer.json())
    details = answer.json()
    assert (details["monitor"]["windows"], details["rows"], details["per_s"]) == (10, 500, pytest.approx(50 / 49))
    (alarm,) = details["alarms"]
    assert (alarm["state"], alarm["moved"][0]["feature"], alarm["window"]) == ("open", "age", 8)
    assert details["watched"]["hooks"] == ["webhook"]
    page = client.get("/monitors/digits").text
    for text in (answer.text, page):
        assert "sesame" not in text
        assert HOSTILE_NAME not in text or text is answer.text
    assert "&lt;script&gt;alert" in page
    assert 'aria-label="age: unusual in 4 of 10 windows' in page
    assert "Window 10 against the reference" in page
    assert "error, where labels came" in page
    assert client.get("/monitors/calm").text.count("None was raised") == 1


def test_windows_and_errors_come_in_parts(client: TestClient) -> None:
    answer = client.get("/api/v1/monitors/digits/windows", params={"offset": 7, "limit": 2}).json()
    model_of(WindowPage).model_validate(answer)
    assert ([window["number"] for window in answer["windows"]], answer["total"]) == ([8, 9], 10)
    assert answer["windows"][0]["drift"]["age"] < 0.05
    errors = client.get("/api/v1/monitors/digits/errors").json()
    model_of(ErrorPage).model_validate(errors)
    assert [round(one["metrics"]["error"], 2) for one in errors["errors"]] == [0.1, 0.12, 0.14, 0.16, 0.18]


def test_what_is_not_there_is_said(client: TestClient) -> None:
    for path in ("digts", "..%2fdigits", "digits%00"):
        assert client.get(f"/api/v1/monitors/{path}").status_code == 404
    assert "Did you mean 'digits'?" in client.get("/api/v1/monitors/digts").text
    refused = client.post("/api/v1/monitors/digits/alarms/alarm-9/acknowledge", json={}, headers=ASKING)
    assert refused.status_code == 404
    assert "alarm-1" in refused.text


def test_alarms_are_acknowledged_by_those_who_may(tmp_path: Path) -> None:
    project.use(tmp_path)
    try:
        make_monitor(project.current())
        path = "/api/v1/monitors/digits/alarms/alarm-1/acknowledge"
        client = client_of(project.current())
        assert client.post(path, json={"note": "x"}).status_code == 403, "a page of another origin cannot say so"
        reader = client_of(project.current(), Access(most=Role.READ))
        assert reader.post(path, json={"note": "x"}, headers=ASKING).status_code == 403
        assert "data-acknowledge" not in reader.get("/monitors/digits").text
        assert len(monitoring.monitor("digits").alarms(only_open=True)) == 1
        answer = client.post(path, json={"note": "a new <b>camera</b>"}, headers=ASKING)
        assert answer.status_code == 200
        model_of(AlarmAnswer).model_validate(answer.json())
        assert (answer.json()["state"], answer.json()["note"]) == ("acknowledged", "a new <b>camera</b>")
        assert monitoring.monitor("digits").alarms(only_open=True) == []
        page = client.get("/monitors/digits").text
        assert "a new &lt;b&gt;camera&lt;/b&gt;" in page
        assert "data-acknowledge" not in page
    finally:
        project.use(None)


def test_many_windows_are_drawn_in_few_cells_and_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(ProjectFolder(tmp_path), "long")
    folder.root.mkdir(parents=True)
    watched = Watched(subject="long", window=WindowChoice(rows=50))
    journal = JournalWriter(folder.journal)
    facts: list[MonitorStarted | WindowJudged] = [MonitorStarted(at=START, id="long", watched=watched)]
    for number in range(1, 10_001):
        drift = {f"f{column}": 0.02 if number == 777 and not column else 0.9 for column in range(6)}
        at = START + 60 * number
        facts.append(
            WindowJudged(at=at, number=number, model_version=1, first_at=at, last_at=at + 50, rows=50, drift=drift)
        )
    journal.append(facts)
    client = client_of(ProjectFolder(tmp_path))
    page = client.get("/monitors/long").text
    assert page.count('<rect class="unusual"') == 1
    assert "window 777: 2.00% by chance" in page
    assert len(page) < 60_000
    read: list[int] = []
    read_new = JournalReader.read_new

    def counted(reader: Any) -> Any:
        new = read_new(reader)
        read.append(len(new))
        return new

    monkeypatch.setattr(JournalReader, "read_new", counted)
    journal.append([msgspec.structs.replace(facts[-1], number=10_001)])
    journal.close()
    assert client.get("/api/v1/monitors/long").json()["monitor"]["windows"] == 10_001
    assert read == [1], "only what is new"
