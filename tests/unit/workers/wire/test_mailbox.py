"""Several threads of a runner wait for different messages on one socket."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from typing import NoReturn

import pytest

from cargobike.workers.wire import mailbox as module
from cargobike.workers.wire.mailbox import Mailbox


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Mailbox[str]]]:
    agent, runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with agent, runner:
        yield agent, Mailbox(runner, bytes.decode)


@pytest.fixture
def polled(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how many milliseconds the socket was polled each time; nothing ever comes."""
    times_ms: list[float] = []

    class Poller:
        def register(self, source: socket.socket, events: int) -> None:
            assert events == select.POLLIN

        def poll(self, timeout_ms: float) -> list[object]:
            times_ms.append(timeout_ms)
            return []

    monkeypatch.setattr(select, "poll", Poller)
    return times_ms


def is_any(_: str) -> bool:
    return True


def test_each_thread_gets_what_is_meant_for_it(
    ends: tuple[socket.socket, Mailbox[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_UP_S", 60.0)  # they wake each other, and need not look up
    agent, mailbox = ends
    heard: dict[str, str | None] = {}

    def wait(word: str) -> None:
        heard[word] = mailbox.wait(lambda message: message == word, 10.0)

    threads = [threading.Thread(target=wait, args=(word,)) for word in ("verdict", "gathered", "kept")]
    for thread in threads:
        thread.start()
    for word in ("kept", "verdict", "gathered"):
        agent.send(word.encode())
    for thread in threads:
        thread.join(10.0)
    assert heard == {word: word for word in ("verdict", "gathered", "kept")}


def test_what_is_not_asked_for_yet_is_kept(ends: tuple[socket.socket, Mailbox[str]]) -> None:
    agent, mailbox = ends
    agent.send(b"later")
    agent.send(b"now")
    assert mailbox.wait(lambda message: message == "now", 10.0) == "now"
    assert mailbox.wait(lambda message: message == "later", 0.0) == "later"


def test_waiting_ends_in_time_or_when_it_makes_no_sense_any_more(ends: tuple[socket.socket, Mailbox[str]]) -> None:
    _, mailbox = ends
    assert mailbox.wait(lambda _: True, 0.05) is None
    assert mailbox.wait(lambda _: True, 60.0, give_up=lambda: True) is None


def test_a_message_is_returned_once_and_in_the_order_of_their_coming(ends: tuple[socket.socket, Mailbox[str]]) -> None:
    agent, mailbox = ends
    for word in ("a1", "b1", "b2", "a2"):
        agent.send(word.encode())
    assert mailbox.wait(lambda message: message == "a2", 10.0) == "a2"
    assert mailbox.wait(lambda message: message.startswith("b"), 10.0) == "b1"
    assert mailbox.wait(is_any, 10.0) == "a1"
    assert mailbox.wait(is_any, 10.0) == "b2"
    assert mailbox.take(is_any) == []


def test_what_is_here_is_taken_without_waiting(
    ends: tuple[socket.socket, Mailbox[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, mailbox = ends
    assert mailbox.take(is_any) == []
    for word in ("a1", "b1", "a2", "b2"):
        agent.send(word.encode())
    assert mailbox.take(lambda message: message.startswith("a")) == ["a1", "a2"]
    assert mailbox.take(lambda message: message.startswith("a")) == []
    assert mailbox.take(is_any) == ["b1", "b2"]
    assert mailbox.take(is_any) == []


def test_taking_wakes_those_that_wait(
    ends: tuple[socket.socket, Mailbox[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_UP_S", 60.0)
    agent, mailbox = ends
    mailbox._is_being_read = True
    heard: list[str | None] = []
    thread = threading.Thread(target=lambda: heard.append(mailbox.wait(lambda message: message == "b", 60.0)))
    waits = threading.Event()
    wait = mailbox._changed.wait

    def watched(timeout_s: float | None = None) -> bool:
        waits.set()
        return wait(timeout_s)

    monkeypatch.setattr(mailbox._changed, "wait", watched)
    thread.start()
    assert waits.wait(30)
    for word in (b"a", b"b"):
        agent.send(word)
    assert mailbox.take(is_any) == [], "another thread reads, and will keep what comes"
    with mailbox._changed:
        mailbox._is_being_read = False
    assert mailbox.take(lambda message: message == "a") == ["a"]
    thread.join(10.0)
    assert heard == ["b"]


def test_a_thread_looks_up_often_enough_and_never_waits_for_too_long(
    ends: tuple[socket.socket, Mailbox[str]], polled: list[float]
) -> None:
    _, mailbox = ends
    assert mailbox.wait(is_any, 60.0, give_up=lambda: len(polled) == 3) is None
    assert polled == [100.0, 100.0, 100.0]
    polled.clear()
    assert mailbox.wait(is_any, 0.02) is None
    assert 0 < polled[0] <= 20.0
    assert polled == sorted(polled, reverse=True)
    polled.clear()
    assert mailbox.take(is_any) == []
    assert polled == [0.0]
    assert mailbox.wait(is_any, 0.0) is None
    assert polled == [0.0], "there was no time"


def test_one_thread_reads_at_a_time(ends: tuple[socket.socket, Mailbox[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    _, mailbox = ends
    is_reading, may_end, polls = threading.Event(), threading.Event(), list[float]()

    class Poller:
        def register(self, source: socket.socket, events: int) -> None:
            pass

        def poll(self, timeout_ms: float) -> list[object]:
            polls.append(timeout_ms)
            is_reading.set()
            assert may_end.wait(30)
            return []

    monkeypatch.setattr(select, "poll", Poller)
    thread = threading.Thread(target=mailbox.wait, args=(is_any, 60.0, may_end.is_set))
    thread.start()
    assert is_reading.wait(30)
    try:
        assert mailbox.take(is_any) == []
        assert len(polls) == 1
    finally:
        may_end.set()
        thread.join(30)


def test_a_thread_that_fails_at_a_message_lets_the_next_one_read() -> None:
    agent, runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with agent, runner:
        mailbox = Mailbox(runner, int)
        agent.send(b"nonsense")
        agent.send(b"7")
        with pytest.raises(ValueError, match="nonsense"):
            mailbox.wait(lambda _: True, 10.0)
        assert mailbox.wait(lambda _: True, 10.0) == 7


def test_a_runner_without_its_agent_ends(
    ends: tuple[socket.socket, Mailbox[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class EndedError(Exception):
        pass

    def end(code: int) -> NoReturn:
        assert code == 1
        raise EndedError

    monkeypatch.setattr(os, "_exit", end)
    agent, mailbox = ends
    agent.close()
    with pytest.raises(EndedError):
        mailbox.wait(is_any, 10.0)
