"""Packets between the processes of one worker, received into one buffer."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator

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
