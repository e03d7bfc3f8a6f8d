"""What becomes of what a server of S3 may answer: a small server says it, one answer after the other."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cargobike.core.errors import StoreError
from cargobike.store.files import patient
from cargobike.store.files.access import s3_clients
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage
from support.storage_servers import S3Endpoint

Answer = tuple[int, str]
WRITER = "x-amz-meta-cargobike-writer"


class Server(ThreadingHTTPServer):
    """Answers as it is told, and with the content of a file when it has been told nothing more."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, str]] = []
        self.writer = ""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.server.requests.append((self.command, self.headers.get("Authorization", "")))
        status, code = self.server.answers.pop(0) if self.server.answers else (200, "")
        if self.command == "PUT" and status == 200:
            self.server.writer = self.headers.get(WRITER, "")
        if code == "lost":
            self.close_connection = True
            return
        body = b"content" if not code else f"<Error><Code>{code}</Code><Message>said</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(1000 if code == "cut" else len(body)))
        self.send_header("ETag", '"1"')
        self.send_header(WRITER, self.server.writer)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"con" if code == "cut" else body)
        if code == "cut":
            self.close_connection = True

    do_GET = do_PUT = do_HEAD = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        S3Endpoint(f"http://127.0.0.1:{server.server_address[1]}", "first-key", "secret").use(monkeypatch)
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def storage(server: Server) -> Storage:
    return open_storage("s3://bucket/x", timeout_s=60)


def test_a_busy_server_is_asked_again(server: Server, storage: Storage) -> None:
    server.answers = [(503, "SlowDown"), (500, "InternalError"), (503, "ServiceUnavailable")]
    assert storage.read("a") == b"content"
    assert len(server.requests) == 4


def test_an_answer_that_is_cut_off_is_not_taken_for_the_file(server: Server, storage: Storage) -> None:
    server.answers = [(200, "cut"), (200, "cut")]
    assert storage.read("a") == b"content"
    assert len(server.requests) == 3


def test_renewed_credentials_are_used(server: Server, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert storage.read("a") == b"content"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "second-key")
    server.answers = [(400, "ExpiredToken")]
    assert storage.read("a") == b"content"
    assert ["second-key" in authorization for _, authorization in server.requests] == [False, False, True]


class Clock:
    """A time that passes only while it is waited for, so that a slow machine tries as often as a fast one."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


def test_credentials_that_stay_expired_are_said(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "time", Clock())
    server.answers = [(400, "ExpiredToken")] * 100
    with pytest.raises(StoreError, match=r"s3://bucket/x cannot be read \(a\): said\. It was tried .* Renew the"):
        open_storage("s3://bucket/x", timeout_s=2.0).read("a")
    assert len(server.requests) > 1


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "AccessDenied", "Ask for the right"),
        (403, "SignatureDoesNotMatch", "Check the credentials"),
        (404, "NoSuchBucket", "no such bucket: create it"),
        (403, "RequestTimeTooSkewed", "Set the clock"),
    ],
)
def test_a_refusal_is_said_at_once(server: Server, storage: Storage, status: int, code: str, words: str) -> None:
    server.answers = [(status, code)] * 100
    with pytest.raises(StoreError, match=rf"cannot be written to \(a\).*{words}"):
        storage.write("a", b"x")
    assert len(server.requests) == 1


def test_a_file_that_was_created_counts_though_the_answer_was_lost(server: Server, storage: Storage) -> None:
    server.answers = [(200, "lost"), (412, "PreconditionFailed")]
    assert storage.create("a", b"x")
    assert [method for method, _ in server.requests] == ["PUT", "PUT", "HEAD"]


def test_a_file_that_is_there_is_not_created(server: Server, storage: Storage) -> None:
    server.writer = "another call"
    server.answers = [(412, "PreconditionFailed")]
    assert not storage.create("a", b"x")
    assert [method for method, _ in server.requests] == ["PUT", "HEAD"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the clients that are made from now on."""
    clients: list[object] = []
    real = s3_clients._make

    def make() -> object:
        clients.append(real())
        return clients[-1]

    monkeypatch.setattr(s3_clients, "_make", make)
    return clients


def test_storages_share_a_client(server: Server, made: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers = [(200, ""), (503, "SlowDown")]
    for place in ("s3://bucket/x", "s3://bucket/x", "s3://other/y"):
        assert open_storage(place).read("a") == b"content"
    assert len(made) == 1, "to make one takes long, and a busy server is no reason to"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "second-key")
    assert open_storage("s3://bucket/x").read("a") == b"content"
    assert len(made) == 2, "another user is another one"
    assert "second-key" in server.requests[-1][1]


@pytest.mark.parametrize(("status", "code"), [(403, "InvalidAccessKeyId"), (404, "NoSuchBucket"), (200, "lost")])
def test_a_client_that_failed_is_not_handed_out_again(
    server: Server, made: list[object], status: int, code: str
) -> None:
    storage = open_storage("s3://bucket/x", timeout_s=0.0)
    server.answers = [(status, code)] * 100
    with pytest.raises(StoreError):
        storage.read("a")
    server.answers = []
    before = len(made)
    assert open_storage("s3://bucket/x").read("a") == b"content", "its files may name other credentials now"
    assert len(made) == before + 1


def test_so_many_clients_are_kept_and_no_more(made: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    clients = s3_clients.Clients()
    for number in range(20):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"key-{number}")
        assert clients.get() is clients.get()
    assert len(clients._known) == s3_clients._MOST
    assert len(made) == 20


def test_a_copy_of_the_process_makes_a_client_of_its_own(server: Server, storage: Storage) -> None:
    assert storage.read("a") == b"content"
    client = s3_clients.CLIENTS.get()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        is_fine = open_storage("s3://bucket/x").read("a") == b"content"
        os._exit(0 if is_fine and s3_clients.CLIENTS.get() is not client else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert s3_clients.CLIENTS.get() is client
    assert open_storage("s3://bucket/x", timeout_s=0.0).read("a") == b"content"
