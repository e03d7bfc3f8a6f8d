"""Several threads of a runner wait for different messages on one socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from cargobike.workers.wire.mailbox import Mailbox


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Mailbox[str]]]:
    agent, runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with agent, runner:
        yield agent, Mailbox(runner, bytes.decode)


def test_each_thread_gets_what_is_meant_for_it(ends: tuple[socket.socket, Mailbox[str]]) -> None:
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
