"""What the kernel knows of a TCP connection, and what it can be told. On Linux; elsewhere sockets are left alone."""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass

SO_MAX_PACING_RATE = 47
TCP_INFO = 11
TCP_CONGESTION = 13
TCP_NOTSENT_LOWAT = 25
NO_LIMIT = 2**64 - 1
SMALLEST_RATE = 1024
"""Bytes a second. The kernel waits for a packet's whole time before it looks at the rate again, so less would hang."""

FIELDS = struct.Struct("=8x 24I QQQQ II IIII Q QQQ II QQ")
"""`struct tcp_info` up to `tcpi_bytes_retrans` (Linux 4.19). Older kernels return less, newer ones more."""

WHOLE_SINCE_4_1 = 128
"""How much a kernel returns that counts the bytes which were acknowledged."""


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """A look at a connection; what an older kernel does not tell is 0.

    Attributes:
        rtt_s: The smoothed round-trip time.
        min_rtt_s: The smallest of the last minutes.
        mss: Bytes in a packet.
        acked: Bytes that the other side has confirmed, since the connection began; None on kernels before 4.1. What
            has arrived behind a lost packet counts: otherwise nothing would seem to arrive until it was sent again.
        segments: Packets with data that were sent, repeated ones included.
        repeated: Packets that were sent again.
        unsent: Bytes that the program has handed over and the kernel has not sent yet.
        unacked: Packets under way.
        ack_age_s: How long ago the last confirmation came.
    """

    rtt_s: float
    min_rtt_s: float
    mss: int
    acked: int | None
    segments: int
    repeated: int
    unsent: int
    unacked: int
    ack_age_s: float


def parse(raw: bytes) -> TcpInfo:
    """Read `struct tcp_info` as any kernel returns it."""
    values = FIELDS.unpack(raw[: FIELDS.size].ljust(FIELDS.size, b"\0"))
    counts, (acked, segments) = values[:24], (values[26], values[28])
    return TcpInfo(
        rtt_s=counts[15] / 1e6,
        min_rtt_s=values[31] / 1e6,
        mss=counts[2],
        acked=acked + counts[5] * counts[2] if len(raw) >= WHOLE_SINCE_4_1 else None,
        segments=values[33] or segments,
        repeated=counts[23],
        unsent=values[30],
        unacked=counts[4],
        ack_age_s=counts[12] / 1e3,
    )


def read(sock: socket.socket) -> TcpInfo:
    """Ask the kernel; raises OSError once the socket is closed."""
    return parse(sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256))


def is_paced_by_kernel(sock: socket.socket) -> bool:
    """Tell whether the kernel can pace this socket: a TCP socket on Linux."""
    if not sys.platform.startswith("linux") or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM


def set_rate(sock: socket.socket, rate: float | None) -> None:
    """Let the kernel send at most that many bytes a second; None for no limit."""
    value = NO_LIMIT if rate is None else max(SMALLEST_RATE, int(rate))
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", value))
    except OSError:  # before Linux 5.1 the option has 32 bits
        sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=I", min(value, 2**32 - 1)))


def choose_congestion_control(sock: socket.socket, names: tuple[str, ...]) -> str:
    """Take the first congestion control that the kernel has and allows; return which one it is then."""
    for name in names:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
        except OSError:
            continue
        break
    return sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()


def keep_little_unsent(sock: socket.socket, count: int) -> None:
    """Call a socket full when that many bytes wait in the kernel, so that a cut of the rate takes effect soon."""
    sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, count)
