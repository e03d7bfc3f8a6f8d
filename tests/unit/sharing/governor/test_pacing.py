"""The pacer sets what the kernel keeps, on real sockets."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from datetime import datetime

import pytest

from cargobike.sharing.governor import tcp_info
from cargobike.sharing.governor.limits import Limits, parse_hours
from cargobike.sharing.governor.pacing import Pacer
from cargobike.sharing.governor.paths import LONG_PATHS, SHORT_PATHS, Connection

NOON = datetime(2026, 3, 2, 12)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as near:
        far, _ = server.accept()
        with far:
            yield near, far


@pytest.fixture
def unix_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def told(sock: socket.socket) -> int:
    (rate,) = struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, tcp_info.SO_MAX_PACING_RATE, 8))
    return int(rate)


def test_limits_reach_the_kernel_and_can_be_changed_while_connected(pair: tuple[socket.socket, socket.socket]) -> None:
    near, _ = pair
    with Pacer(Limits(send_rate=2e6)) as pacer, pacer.attach(near, "tower") as handle:
        assert told(near) == 2_000_000
        pacer.limits = Limits(send_rate=2e6, peers={"tower": 5e5, "other": 1.0})
        assert told(near) == 500_000
        pacer.limits = Limits()
        assert told(near) == tcp_info.NO_LIMIT
        assert handle.wait(10**9, timeout_s=0)


def test_hours_of_the_day_reach_the_kernel(pair: tuple[socket.socket, socket.socket]) -> None:
    limits = Limits(hours=(parse_hours("08:00-18:00 send=100k"),))
    with Pacer(limits, local_time=lambda: NOON) as pacer, pacer.attach(pair[0], "tower"):
        assert told(pair[0]) == 100_000


def test_a_limit_is_divided_among_the_connections_that_have_something_to_send() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Pacer(Limits(send_rate=9e5)) as pacer:
        socks = [socket.create_connection(server.getsockname()) for _ in range(3)]
        handles = [pacer.attach(sock, f"peer {number % 2}") for number, sock in enumerate(socks)]
        for sock in socks:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:  # until the kernel has more than it may send
                    sock.send(bytes(65536))
        pacer.limits = Limits(send_rate=3e5)
        assert max(told(sock) for sock in socks) <= 300_000
        assert min(told(sock) for sock in socks) >= 65_000
        for handle, sock in zip(handles, socks, strict=True):
            handle.close()
            sock.close()


def test_a_pause_holds_every_socket_until_it_ends(pair: tuple[socket.socket, socket.socket]) -> None:
    with Pacer(Limits(send_rate=0)) as pacer, pacer.attach(pair[0], "tower") as handle:
        assert not handle.wait(1, timeout_s=0)
        answers: list[bool] = []
        waiting = threading.Thread(target=lambda: answers.append(handle.wait(1, timeout_s=60)))
        waiting.start()
        pacer.limits = Limits()
        waiting.join(timeout=60)
        assert answers == [True]


def test_a_socket_that_the_kernel_does_not_pace_has_a_bucket(unix_pair: tuple[socket.socket, socket.socket]) -> None:
    with Pacer(Limits(send_rate=1000)) as pacer, pacer.attach(unix_pair[0], "tower") as handle:
        assert handle.wait(10**6, timeout_s=60)
        assert not handle.wait(1, timeout_s=0)
        pacer.limits = Limits()
        assert handle.wait(10**9, timeout_s=0)


def test_what_is_received_has_a_limit_of_its_own(pair: tuple[socket.socket, socket.socket]) -> None:
    with Pacer(Limits(receive_rate=1000)) as pacer, pacer.attach(pair[0], "tower") as handle:
        assert handle.wait(10**9, timeout_s=0)
        assert handle.wait_to_receive(10**6, timeout_s=60)
        assert not handle.wait_to_receive(1, timeout_s=0)


def test_closing_the_pacer_ends_waits(pair: tuple[socket.socket, socket.socket]) -> None:
    pacer = Pacer(Limits(send_rate=0))
    handle = pacer.attach(pair[0], "tower")
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(handle.wait(1)))
    waiting.start()
    pacer.close()
    waiting.join(timeout=60)
    assert answers == [False]
    handle.close()


def test_a_socket_that_was_closed_is_forgotten(pair: tuple[socket.socket, socket.socket]) -> None:
    with Pacer(Limits(send_rate=1e6)) as pacer:
        handle = pacer.attach(pair[0], "tower")
        assert [status.peer for status in pacer.status()] == ["tower"]
        pair[0].close()
        pacer.limits = Limits(send_rate=2e6)  # does not raise
        handle.close()
        handle.close()
        assert pacer.status() == []


def congestion_control(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, tcp_info.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def test_a_short_path_and_a_trickle_have_another_congestion_control(pair: tuple[socket.socket, socket.socket]) -> None:
    on_long = tcp_info.choose_congestion_control(pair[1], LONG_PATHS)
    on_short = tcp_info.choose_congestion_control(pair[1], SHORT_PATHS)
    connection = Connection(pair[0])
    connection.suit(0.05, trickles=False)
    assert congestion_control(pair[0]) == on_long
    connection.suit(0.05, trickles=True)
    assert congestion_control(pair[0]) == on_short
    connection.suit(None, trickles=False)
    assert congestion_control(pair[0]) == on_long
    connection.suit(0.001, trickles=False)
    assert congestion_control(pair[0]) == on_short
    pair[0].close()
    connection.suit(0.05, trickles=False)  # does not raise


def test_the_kernel_says_what_was_delivered(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    near.sendall(b"x" * 5000)
    assert far.recv(5000, socket.MSG_WAITALL) == b"x" * 5000
    info = tcp_info.read(near)
    assert info.acked in range(1, 5002)
    assert info.mss > 0
    assert info.rtt_s > 0


def test_the_answer_of_an_older_kernel_is_read_as_far_as_it_goes() -> None:
    info = tcp_info.parse(b"\1" * 104)
    assert info.acked is None
    assert info.rtt_s > 0
    assert info.unsent == 0
    assert tcp_info.parse(b"\1" * 300).acked is not None


def test_what_has_arrived_behind_a_lost_packet_counts_as_delivered() -> None:
    fields = [0] * 42
    fields[2], fields[5], fields[26] = (
        1448,
        3,
        10_000,
    )  # bytes in a packet, packets behind the lost one, confirmed bytes
    assert tcp_info.parse(tcp_info.FIELDS.pack(*fields)).acked == 10_000 + 3 * 1448
