"""Where a worker is, as the driver and its peers see it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import socket
import struct

from cargobike.core.running.member import LOOPBACK

_SIOCGIFADDR = 0x8915


def host_of(address: str) -> str:
    """Return the host in an address such as `tcp://10.0.0.7:4711`."""
    return address.rpartition(":")[0].partition("://")[2]


def address_towards(host: str) -> str:
    """Return the address from which this machine reaches another, under which the other can reach it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))  # sends nothing: the kernel only looks up the route
            return str(probe.getsockname()[0])
    except OSError:
        return LOOPBACK


@functools.cache
def name_of_machine(driver: str) -> str:
    """Return what distinguishes this machine from others: its name, and its address where the driver may be elsewhere.

    Names alone are not enough: machines made from one image often share theirs.
    """
    name, address = socket.gethostname(), address_towards(host_of(driver))
    return name if address == LOOPBACK else f"{name} ({address})"


def interface_of(address: str) -> str:
    """Return the name of the network interface with this address, empty if it cannot be told."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no such address
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return "lo" if address.startswith("127.") else ""
