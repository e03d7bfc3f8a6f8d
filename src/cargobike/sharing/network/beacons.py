"""Find members on the same link: small packets to a multicast group, which only members can make and understand.

A beacon says at which address a member listens, and nothing else that could be read: the network has no name in it. It
is authenticated with the network's key and signed by its sender, and it names the address that it must come from. So
one that was recorded and sent again from elsewhere leads nowhere. What it names is dialled like any other address.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Final

from cargobike.sharing.identity.keys import Identity, is_signed, read_key, write_key
from cargobike.sharing.network.network import Network

_log = logging.getLogger(__name__)
GROUP: Final = "239.255.77.20"
PORT: Final = 47720
_WORDS: Final = b"cargobike beacon1"
_HEAD: Final = struct.Struct(f"!{len(_WORDS)}s16s16s4sH32s")
_LENGTH: Final = _HEAD.size + 64 + 32
_EVERY_S: Final = 30.0
_POLL_S: Final = 0.5
_END_S: Final = 5.0
_MOST_CHECKED: Final = 200
"""Beacons that are looked at between two of our own; a flood costs no more than that."""


def make_beacon(network: Network, identity: Identity, host: str, port: int) -> bytes:
    """Return the beacon of a member that listens at an IPv4 address."""
    head = _HEAD.pack(_WORDS, _tag(network), os.urandom(16), socket.inet_aton(host), port, read_key(identity.publisher))
    signed = head + identity.sign(b"cargobike share beacon 1\0" + head)
    return signed + hmac.digest(network.derived(b"beacon"), signed, "sha256")


def read_beacon(network: Network, data: bytes, sender: str) -> tuple[str, int, str] | None:
    """Return host, port and key of the member whose beacon this is; `None` if it is not one of this network."""
    if len(data) != _LENGTH or not data.startswith(_WORDS):
        return None
    signed, proof = data[:-32], data[-32:]
    if not hmac.compare_digest(hmac.digest(network.derived(b"beacon"), signed, "sha256"), proof):
        return None
    head, signature = signed[:-64], signed[-64:]
    _, tag, _, address, port, public = _HEAD.unpack(head)
    publisher, host = write_key(public), socket.inet_ntoa(address)
    if tag != _tag(network) or host != sender or not port or not network.admits(publisher):
        return None
    if not is_signed(publisher, b"cargobike share beacon 1\0" + head, signature):
        return None
    return host, port, publisher


def _tag(network: Network) -> bytes:
    return network.derived(b"beacon tag")[:16]


class Beacons:
    """Sends a beacon now and then, and listens for those of others, in a thread.

    Args:
        network: Who is to understand them.
        identity: Who we are.
        port: Where we listen for members.
        heard: Called with the address of each member that is heard, as `host:port`.
        interface: The address of the interface to use; the kernel chooses one by default.
        group: The multicast group, and its port.
        every_s: Seconds between two beacons.
    """

    def __init__(
        self,
        network: Network,
        identity: Identity,
        port: int,
        heard: Callable[[str], None],
        *,
        interface: str = "",
        group: tuple[str, int] = (GROUP, PORT),
        every_s: float = _EVERY_S,
    ) -> None:
        self._network, self._identity, self._port, self._heard = network, identity, port, heard
        self._group, self._every_s = group, every_s
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._host = self._join(interface)
        except OSError:
            self._socket.close()
            raise
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cargobike-beacons", daemon=True)
        self._thread.start()

    def _join(self, interface: str) -> str:
        """Join the group, and return the address that our packets come from."""
        sock = self._socket
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(AttributeError, OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)  # no router passes them on
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        chosen = socket.inet_aton(interface or "0.0.0.0")  # noqa: S104 - the kernel chooses an interface
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(self._group[0]) + chosen)
        sock.bind(self._group)
        sock.settimeout(_POLL_S)
        if interface:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, chosen)
            return interface
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(self._group)  # sends nothing; the kernel says which address it would send from
            return str(probe.getsockname()[0])

    def _run(self) -> None:
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(self._host))
        with out, self._socket:
            out.bind((self._host, 0))
            waited_s, checked = self._every_s, 0
            while not self._stopping.is_set():
                if waited_s >= self._every_s:
                    waited_s, checked = 0.0, 0
                    self._send(out)
                try:
                    data, sender = self._socket.recvfrom(2048)
                except TimeoutError:
                    waited_s += _POLL_S
                    continue
                except OSError as error:
                    _log.warning("Members on this link are not heard any more: %s", error)
                    return
                checked += 1
                if checked <= _MOST_CHECKED:
                    self._take(data, sender[0])
                else:
                    waited_s += 0.01

    def _send(self, out: socket.socket) -> None:
        try:
            out.sendto(make_beacon(self._network, self._identity, self._host, self._port), self._group)
        except OSError as error:
            _log.info("A beacon could not be sent: %s", error)

    def _take(self, data: bytes, sender: str) -> None:
        beacon = read_beacon(self._network, data, sender)
        if beacon is not None and beacon[2] != self._identity.publisher:
            self._heard(f"{beacon[0]}:{beacon[1]}")

    def close(self) -> None:
        """Send and listen no more."""
        self._stopping.set()
        self._thread.join(_END_S)
