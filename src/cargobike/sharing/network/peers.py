"""Where members were reached, or said that they can be: kept for the next time, and told to other members."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.plain_files import read_plain
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.wire.dialling import check_address

_MOST: Final = 500
_FORGOTTEN_S: Final = 30 * 24 * 3600.0
_TOLD_S: Final = 3600.0


class Peer(msgspec.Struct, kw_only=True):
    """One address.

    Attributes:
        publisher: The key that was met there; empty if none was yet.
        met_at: When, in seconds since 1970; 0 for never.
        heard_at: When it was named last, by a user, a member or a beacon.
        failures: How often it could not be reached since.
        is_named: Whether a user named it: then it is never forgotten.
    """

    publisher: str = ""
    met_at: float = 0.0
    heard_at: float = 0.0
    failures: int = 0
    is_named: bool = False


_decoder = msgspec.json.Decoder(Annotated[dict[str, Peer], Meta(max_length=4 * _MOST)])


class PeerBook:
    """The addresses of a network; may be used by several threads.

    Args:
        path: Its file.
        clock: Returns seconds since 1970.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._peers: dict[str, Peer] = {}
        self._own: set[str] = set()
        with contextlib.suppress(OSError, *UNDECODABLE):  # a damaged file is found again from others
            self._peers = _decoder.decode(read_plain(path))

    def name(self, addresses: Iterable[str]) -> None:
        """Note addresses that a user gave.

        Raises:
            InvalidInputError: If one is not `host:port`.
        """
        for address in addresses:
            check_address(address)
            with self._lock:
                self._peer(address).is_named = True

    def hear(self, address: str) -> None:
        """Note an address that a member or a beacon named; nonsense is ignored."""
        with contextlib.suppress(InvalidInputError):
            check_address(address)
            with self._lock:
                if address not in self._own and (address in self._peers or len(self._peers) < _MOST):
                    self._peer(address)

    def disown(self, address: str) -> None:
        """Forget an address at which this project itself was met, and hear of it no more."""
        with self._lock:
            self._own.add(address)
            self._peers.pop(address, None)

    def meet(self, address: str, publisher: str) -> None:
        """Note that a member was reached."""
        with self._lock:
            peer = self._peer(address)
            peer.publisher, peer.met_at, peer.failures = publisher, self._clock(), 0

    def fail(self, address: str) -> None:
        """Note that no member could be reached at an address."""
        with self._lock:
            if address in self._peers:
                self._peers[address].failures += 1

    def is_unreachable(self, address: str, publisher: str) -> bool:
        """Tell whether a member is known not to be where it says that it is; an empty address is nowhere."""
        if not address:
            return True
        with self._lock:
            peer = self._peers.get(address)
        return peer is not None and (peer.failures > 0 or peer.publisher not in {"", publisher})

    def has_untried(self) -> bool:
        """Tell whether there is an address that was heard of, and was neither reached nor tried."""
        with self._lock:
            return any(not peer.met_at and not peer.failures for peer in self._peers.values())

    def addresses(self, most: int = _MOST) -> list[str]:
        """Return addresses, those that users named first, then the ones met last."""
        with self._lock:
            peers = sorted(self._peers.items(), key=lambda item: (not item[1].is_named, -item[1].met_at))
        return [address for address, _ in peers[:most]]

    def told(self, most: int = 100) -> list[str]:
        """Return addresses to tell other members: those at which one was met within the last hour."""
        least = self._clock() - _TOLD_S
        with self._lock:
            return [address for address, peer in self._peers.items() if peer.met_at >= least][:most]

    def peers(self) -> dict[str, Peer]:
        """Return a copy of everything."""
        with self._lock:
            return {address: msgspec.structs.replace(peer) for address, peer in self._peers.items()}

    def save(self) -> None:
        """Write the file; what was neither named by a user nor heard of for a month is left out."""
        least = self._clock() - _FORGOTTEN_S
        with self._lock:
            kept = {
                address: peer
                for address, peer in self._peers.items()
                if peer.is_named or max(peer.met_at, peer.heard_at) > least
            }
            data = msgspec.json.encode(kept)
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            temporary.write_bytes(data)
            os.replace(temporary, self._path)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}.") from error

    def _peer(self, address: str) -> Peer:
        peer = self._peers.setdefault(address, Peer())
        peer.heard_at = self._clock()
        return peer
