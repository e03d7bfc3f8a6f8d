"""The client of a project elsewhere, against a real server."""

from __future__ import annotations

import inspect
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cargobike import client
from cargobike.core import settings
from cargobike.core.errors import (
    AuthenticationError,
    ConnectionLostError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    ServerRefusedError,
    WaitError,
)
from cargobike.core.records import ExperimentState
from cargobike.remote.rooms.room import Room
from cargobike.ui.web.access import Access
from cargobike.ui.web.roles import Role
from support.remote_server import TOKEN, make_certificate, served
from support.web_project import LIVELY, RUNNING, sample_project


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(sample_project(tmp_path_factory.mktemp("served"))) as address:
        yield address


@pytest.fixture
def project(server: str) -> Iterator[client.RemoteProject]:
    with client.connect(server, token=TOKEN) as connected:
        yield connected


def test_experiments_and_trials_are_read_as_typed_records(project: client.RemoteProject) -> None:
    listed = project.experiments.list(limit=2)
    assert (len(listed.experiments), listed.total) == (2, 3)
    assert [one.id for one in project.experiments.list(state=["completed"], sort="started").experiments][-1] == LIVELY
    one = project.experiments.load(LIVELY)
    assert (one.id, one.state, one.may_stop) == (LIVELY, ExperimentState.COMPLETED, False)
    assert project.experiments.load("last").id == listed.experiments[0].id
    page = project.experiments.trials(LIVELY, sort="value", descending=True, limit=3)
    assert len(page.trials) == 3
    number = page.trials[0].trial
    assert project.experiments.trial(LIVELY, number).params == page.trials[0].params
    assert project.experiments.metrics(LIVELY, number, points=10).trial == number
    assert project.experiments.compare(LIVELY, RUNNING).first == LIVELY
    assert project.about().may_stop


def test_what_is_changed_is_read_again(project: client.RemoteProject) -> None:
    assert project.experiments.tag(LIVELY, "fine", "new").tags == ["fine", "new"]
    assert project.experiments.tag(LIVELY, remove=["new"]).tags == ["fine"]
    assert project.experiments.note(LIVELY, "seen").notes[-1].text == "seen"
    assert project.experiments.load(LIVELY).tags == ["fine"]
    assert not project.experiments.stop(LIVELY).was_running


def test_empty_rooms_are_lists_without_entries(project: client.RemoteProject) -> None:
    totals = [
        project.data.list().total,
        project.features.list_groups().total,
        project.features.list_views().total,
        project.features.list_training_datasets().total,
        project.models.list().total,
        project.serving.list_deployments().total,
        project.monitoring.list_monitors().total,
        project.pipelines.list().total,
        len(project.pipelines.schedules().schedules),
        len(project.sharing.networks().networks),
    ]
    assert totals == [0] * 10


def test_what_is_not_there_is_an_error_in_the_words_of_the_server(project: client.RemoteProject) -> None:
    with pytest.raises(NotFoundError, match=r"it has trials 0 to \d+"):
        project.experiments.trial(LIVELY, 4000)
    with pytest.raises(NotFoundError, match="no model 'digits'"):
        project.models.history("digits")
    with pytest.raises(InvalidInputError, match=r"query\.sort") as wrong:
        project.experiments.list(sort="colour")
    assert "127.0.0.1" in str(wrong.value)
    with pytest.raises(NotFoundError):
        project.lineage("model", "a/b")


def test_a_wrong_token_and_a_read_only_server_say_what_to_do(server: str, tmp_path: Path) -> None:
    for token in (None, "another-token-0123456789"):
        with pytest.raises(AuthenticationError, match="CARGOBIKE_TOKEN"):
            client.connect(server, token=token).experiments.list()
    with (
        served(sample_project(tmp_path), Access(most=Role.READ)) as quiet,
        pytest.raises(ForbiddenError, match="read-only"),
    ):
        client.connect(quiet).experiments.stop(LIVELY)


def test_the_environment_names_server_and_token(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_token", "")
    monkeypatch.setenv("CARGOBIKE_SERVER", server)
    monkeypatch.setenv("CARGOBIKE_TOKEN", TOKEN)
    assert client.connect().experiments.list().total == 3
    monkeypatch.setattr(settings, "_token", "")
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o640)
    monkeypatch.setenv("CARGOBIKE_TOKEN_FILE", str(file))
    with pytest.raises(InvalidInputError, match="chmod 600"):
        client.connect()
    file.chmod(0o600)
    assert client.connect().experiments.list().total == 3
    monkeypatch.delenv("CARGOBIKE_SERVER")
    with pytest.raises(InvalidInputError, match="CARGOBIKE_SERVER"):
        client.connect()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("tower:8520", "is no address of a server"),
        ("ftp://tower", "is no address of a server"),
        ("https://me:secret-word@tower", "no user and no password"),
        ("http://127.0.0.1:8520/login#a-token", "give it apart"),
        ("http://tower:port", "no address of a server"),
    ],
)
def test_wrong_addresses_are_refused_without_repeating_secrets(address: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as refused:
        client.connect(address)
    assert "secret-word" not in str(refused.value)


def test_a_token_does_not_travel_unencrypted() -> None:
    with pytest.raises(InvalidInputError, match="unencrypted"):
        client.connect("http://tower:8520", token=TOKEN)
    assert (
        str(client.connect("http://tower:8520", token=TOKEN, allow_http=True).connection.address) == "http://tower:8520"
    )
    with pytest.raises(InvalidInputError, match="That is no token"):
        client.connect("https://tower", token="two\r\nlines")


def test_a_server_must_prove_its_name(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with served(sample_project(tmp_path / "project"), certificate=certificate) as address:
        with pytest.raises(AuthenticationError, match="does not prove its name"):
            client.connect(address, token=TOKEN).experiments.list()
        assert client.connect(address, token=TOKEN, ca_file=certificate.file).experiments.list().total == 3
    with pytest.raises(InvalidInputError, match="PEM"):
        client.connect("https://tower", ca_file=certificate.key)


def test_the_token_is_in_no_message_and_no_log(server: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    connected = client.connect(server, token=TOKEN)
    connected.experiments.list()
    with pytest.raises(NotFoundError) as refused:
        connected.models.history("digits")
    assert TOKEN not in repr(connected) + repr(connected.connection) + str(refused.value) + caplog.text


class _Lines:
    """A server that answers each connection with bytes that were prepared, and keeps what it was sent."""

    def __init__(self, *answers: bytes | None) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked: list[bytes] = []
        self._answers = answers
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        held = []
        for prepared in self._answers:
            try:
                connection, _ = self.socket.accept()
            except OSError:  # closed: the test is over and asked for less than was prepared
                return
            self.asked.append(connection.recv(65536))
            if prepared is None:
                held.append(connection)
                continue
            connection.sendall(prepared)
            connection.close()
        self.socket.close()

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def _answer(body: bytes, status: str = "200 OK", more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status.encode(), len(body), more, body)


_INFO = msgspec.json.encode({"version": "1", "project": "/p", "may_stop": True, "field_of_later": 1})


def test_reading_is_repeated_and_changing_is_not() -> None:
    with _Lines(b"", _answer(b"{}", "503 Busy"), _answer(_INFO)) as lines:
        assert client.connect(lines.address).about().project == "/p"
        assert [asked.split(b" ")[0] for asked in lines.asked] == [b"GET"] * 3
    with _Lines(b"", _answer(b"{}")) as lines:
        with pytest.raises(ConnectionLostError, match="cannot be reached"):
            client.connect(lines.address).experiments.stop("e")
        assert len(lines.asked) == 1


def test_a_server_that_is_silent_is_not_waited_for() -> None:
    with _Lines(None, None) as lines, pytest.raises(WaitError, match=r"has not answered in 0\.3 s"):
        client.connect(lines.address, timeout_s=0.3).about()


def test_redirects_and_other_answers_are_refused() -> None:
    elsewhere = _answer(b"", "302 Found", b"Location: http://elsewhere/\r\n")
    with _Lines(elsewhere) as lines, pytest.raises(ServerRefusedError, match="leads elsewhere"):
        client.connect(lines.address, token=TOKEN).about()
    with _Lines(_answer(b"<html>hello</html>")) as lines, pytest.raises(ServerRefusedError, match="a form that"):
        client.connect(lines.address).about()


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionLostError, match="Is `cargobike ui` running there"):
        client.connect(f"http://127.0.0.1:{port}", timeout_s=2).about()


def test_every_answer_of_a_room_can_be_decoded() -> None:
    """Shapes whose limits msgspec cannot check would only be seen when such an answer comes."""
    shapes: list[Any] = []
    for room in _rooms(Room):
        for name, verb in inspect.getmembers(room, inspect.isfunction):
            if not name.startswith("_"):
                shapes.append(inspect.get_annotations(verb, eval_str=True)["return"])
    assert len(shapes) > 40
    for shape in shapes:
        msgspec.json.Decoder(shape)


def _rooms(kind: type[Room]) -> list[type[Room]]:
    return [*kind.__subclasses__()]
