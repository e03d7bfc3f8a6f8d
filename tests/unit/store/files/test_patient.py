"""Waiting, trying again and explaining, around a storage that does what a test tells it to."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.store.files import patient
from cargobike.store.files.access.access import Access, Claim, Judgement
from cargobike.store.files.patient import PatientStorage, clean
from cargobike.store.files.storage import Entry

AWAY = ConnectionError("connection refused")
DENIED = PermissionError("not for you")


class Scripted(Access):
    """Raises what it is told, one error for each call, then answers."""

    def __init__(self, errors: list[Exception]) -> None:
        self.errors = errors
        self.calls = 0
        self.claims: list[Claim] = []

    def _act(self) -> None:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)

    def read(self, path: str, start: int, length: int | None) -> bytes | None:
        self._act()
        return b"read"

    def write(self, path: str, data: bytes | Path) -> None:
        self._act()

    def create(self, path: str, data: bytes, claim: Claim) -> bool:
        self.claims.append(claim)
        self._act()
        return True

    def list(self, folder: str, *, deep: bool) -> list[Entry]:
        self._act()
        return [Entry("a", 1, "1")]

    def stat(self, path: str) -> Entry | None:
        self._act()
        return None

    def delete(self, path: str) -> None:
        self._act()

    def judge(self, error: Exception) -> Judgement:
        return Judgement(isinstance(error, ConnectionError), "Look at the server.", reopen=str(error) == "expired")


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "_FIRST_PAUSE_S", 0.001)


@pytest.fixture
def opened() -> list[int]:
    return []


def storage_of(access: Access, opened: list[int] | None = None, timeout_s: float = 30) -> PatientStorage:
    def open_access() -> Access:
        if opened is not None:
            opened.append(os.getpid())
        return access

    return PatientStorage("vault://me:hunter22@host/team", open_access, timeout_s)


CALLS: list[Callable[[PatientStorage], object]] = [
    lambda storage: storage.read("a/b"),
    lambda storage: storage.write("a/b", b"x"),
    lambda storage: storage.create("a/b", b"x"),
    lambda storage: list(storage.list("a/b")),
    lambda storage: storage.stat("a/b"),
    lambda storage: storage.delete("a/b"),
]


@pytest.mark.parametrize("call", CALLS)
def test_what_may_pass_is_tried_again(call: Callable[[PatientStorage], object]) -> None:
    access = Scripted([AWAY, AWAY, AWAY])
    call(storage_of(access))
    assert access.calls == 4


@pytest.mark.parametrize("call", CALLS)
def test_what_does_not_pass_is_an_error_that_names_storage_and_path(
    call: Callable[[PatientStorage], object],
) -> None:
    access = Scripted([AWAY] * 1000)
    with pytest.raises(StoreError, match=r"vault://host/team .*\(a/b\): connection refused\. It was tried .* Look at"):
        call(storage_of(access, timeout_s=0.02))
    assert access.calls > 1


def test_a_refusal_is_not_tried_again() -> None:
    access = Scripted([DENIED, DENIED])
    with pytest.raises(StoreError, match=r"cannot be written to \(a\): not for you\. Look at the server") as caught:
        storage_of(access).write("a", b"x")
    assert access.calls == 1
    assert "tried for" not in str(caught.value)


def test_all_attempts_to_create_a_file_are_one_claim() -> None:
    access = Scripted([AWAY, AWAY])
    storage = storage_of(access)
    assert storage.create("a", b"x")
    assert len({claim.token for claim in access.claims}) == 1
    assert len(access.claims) == 3
    storage.create("a", b"x")
    assert access.claims[-1].token != access.claims[0].token


def test_what_has_expired_is_opened_anew(opened: list[int]) -> None:
    storage = storage_of(Scripted([ConnectionError("expired")]), opened)
    assert storage.read("a") == b"read"
    assert len(opened) == 2
    storage.read("a")
    assert len(opened) == 2


def test_a_copy_of_the_process_opens_its_own(opened: list[int]) -> None:
    storage = storage_of(Scripted([]), opened)
    storage.read("a")
    pid = os.fork()
    if pid == 0:
        storage.read("a")
        os._exit(0 if opened == [os.getppid(), os.getpid()] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    storage.read("a")
    assert opened == [os.getpid()]


def test_a_person_is_told_that_it_waits(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "_WARN_AFTER_S", 0.0)
    with caplog.at_level(logging.WARNING):
        storage_of(Scripted([AWAY, AWAY])).read("a")
    (line,) = caplog.messages
    assert line.startswith("vault://host/team does not answer (connection refused); trying again for up to")


def test_the_environment_says_how_long_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_STORAGE_TIMEOUT_S", "0.01")
    access = Scripted([AWAY] * 1000)
    storage = PatientStorage("vault://host", lambda: access)
    with pytest.raises(StoreError, match="connection refused"):
        storage.read("a")
    monkeypatch.setenv("CARGOBIKE_STORAGE_TIMEOUT_S", "nonsense")
    access.errors = [AWAY]
    assert storage.read("a") == b"read"


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t-of-mine")
    error = PermissionError("the key s3cr3t-of-mine at http://me:hunter22@host/x?signature=abc is wrong, hunter22")
    with pytest.raises(StoreError) as caught:
        storage_of(Scripted([error])).read("a")
    assert str(caught.value).count("…") == 3
    for secret in ("s3cr3t", "hunter22", "signature=abc"):
        assert secret not in str(caught.value)
    assert caught.value.__cause__ is None, "the error below would show it in a traceback"
    assert "hunter22" not in repr(storage_of(Scripted([])))
    assert clean("nothing to hide", "s3://bucket") == "nothing to hide"


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must not be negative"):
        storage_of(Scripted([])).read("a", -1)
    with pytest.raises(InvalidInputError, match="must not be negative"):
        storage_of(Scripted([])).read("a", 0, -1)
