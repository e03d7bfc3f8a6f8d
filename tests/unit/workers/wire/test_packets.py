"""Packets between the processes of one worker, received into one buffer."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike.workers.wire.packets import LARGEST, PacketReader


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, PacketReader]]:
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with sender, receiver:
        sender.settimeout(10.0)
        yield sender, PacketReader(receiver)


def test_each_packet_comes_as_it_was_sent(ends: tuple[socket.socket, PacketReader]) -> None:
    sender, reader = ends
    packets = [b"long enough", b"short", b"x" * 50_000]
    for packet in packets:
        sender.send(packet)
    assert [reader.receive(wait=wait) for wait in (True, False, True)] == packets


def test_only_one_that_waits_waits(ends: tuple[socket.socket, PacketReader]) -> None:
    _, reader = ends
    assert reader.receive(wait=False) is None
    reader._source.settimeout(0.05)
    with pytest.raises(TimeoutError):
        reader.receive(wait=True)


def test_the_end_of_the_other_side_is_an_empty_packet(ends: tuple[socket.socket, PacketReader]) -> None:
    sender, reader = ends
    sender.close()
    assert (reader.receive(wait=True), reader.receive(wait=False)) == (b"", b"")


def test_the_largest_packet_fits(ends: tuple[socket.socket, PacketReader]) -> None:
    _, reader = ends
    assert len(reader._buffer) == LARGEST


def test_a_reader_takes_no_memory_before_packets_come(ends: tuple[socket.socket, PacketReader]) -> None:
    sender, _ = ends
    page = resource.getpagesize()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    readers = [PacketReader(sender) for _ in range(8)]
    touched = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * page
    assert len(readers) == 8
    assert touched < LARGEST  # of the eight megabytes that they could receive


_WAITS = """
import os, socket, sys
from cargobike.workers.wire.packets import PacketReader

os.sched_setaffinity(0, {int(sys.argv[2])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # it runs when we do not, and dies later than it is killed
PacketReader(socket.socket(fileno=int(sys.argv[1]))).receive(wait=True)
"""


def test_one_that_is_killed_while_it_waits_takes_nothing_along(ends: tuple[socket.socket, PacketReader]) -> None:
    sender, reader = ends
    mine = os.sched_getaffinity(0)
    processor = min(mine)
    descriptor = reader._source.fileno()
    command = [sys.executable, "-c", _WAITS, str(descriptor), str(processor)]
    waiting = subprocess.Popen(command, pass_fds=[descriptor])
    try:
        while "recv" not in _where(waiting.pid):
            assert waiting.poll() is None
        os.sched_setaffinity(0, {processor})
        waiting.send_signal(signal.SIGKILL)
        sender.send(b"an assignment")
        waiting.wait(60)
    finally:
        os.sched_setaffinity(0, mine)
        waiting.kill()
        waiting.wait(60)
    assert reader.receive(wait=False) == b"an assignment"


def _where(pid: int) -> str:
    """Return the name of the system call in which a process sleeps, as far as the kernel says."""
    status, call = (Path(f"/proc/{pid}/{name}").read_text() for name in ("stat", "syscall"))
    numbers = {"45": "recvfrom", "207": "recvfrom"}  # x86-64, aarch64
    return numbers.get(call.split()[0], "") if status.rpartition(")")[2].split()[0] == "S" else ""
