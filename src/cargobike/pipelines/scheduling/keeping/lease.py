"""Which scheduler of a project is at work: a lease that is renewed, and taken over when it is not.

Each term of office is a numbered file, created only if absent, so that of several candidates one begins it. Its holder
renews it by writing its beat; another process takes over when that has not changed for a while *by its own stopwatch*,
so clocks that differ do not matter. The lease saves work and keeps a second scheduler quiet. That nothing runs twice
does not depend on it, but on the numbered states of each schedule (`book.py`), so a holder that slept does no harm.
"""

from __future__ import annotations

import re
import socket
from typing import Final

import msgspec

from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.storage import Storage

FOLDER: Final = "pipelines/scheduler"
RENEW_S: Final = 10.0
SILENT_S: Final = 30.0
"""A holder whose process cannot be seen from here, and that was silent for so long, has lost its lease."""

_TERM: Final = re.compile(rf"{FOLDER}/terms/([0-9]{{9}})\.json")
_TERMS_KEPT: Final = 3


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a scheduler says of itself.

    Attributes:
        process: Its process, by a name that is never given twice.
        host: Where it is at work.
        pid: The number of its process there.
        since: When its term began, by its own clock.
        at: When it last said so, by its own clock.
        has_left: Whether it ended on purpose.
    """

    process: str
    host: str
    pid: int
    since: float
    at: float
    has_left: bool = False


class Lease:
    """A scheduler's claim to be the one at work.

    Args:
        storage: Where the project lies.
        process: Names this process; given by tests only.
        silent_s: See `SILENT_S`.
    """

    def __init__(self, storage: Storage, process: str = "", silent_s: float = SILENT_S) -> None:
        self._storage = storage
        self._process = process or name_of_this_process().strip()
        self._silent_s = silent_s
        self._term = 0
        self._since = 0.0
        self._renewed = 0.0
        self._seen: tuple[int, str] = (0, "")
        self._seen_at = 0.0
        self.is_held = False

    @property
    def renew_s(self) -> float:
        """How often to call `hold`."""
        return min(RENEW_S, self._silent_s / 3)

    def hold(self, now: float, stopwatch: float) -> bool:
        """Renew the lease, or take it if it is free; returns whether this process holds it.

        Args:
            now: The time, for people.
            stopwatch: Seconds that pass at the same pace everywhere, from any start.

        Raises:
            StoreError: If the storage does not answer; the lease is lost then, as far as this process is concerned.
        """
        self.is_held = False  # until the storage has said otherwise
        if self._term:  # also if the storage was away for a while: the term is ours until another begins
            self.is_held = self._renew(now, stopwatch)
        if not self.is_held:
            self.is_held = self._take(now, stopwatch)
        return self.is_held

    def is_sure(self, stopwatch: float) -> bool:
        """Tell whether no other process can have taken the lease: it was renewed not long ago."""
        return self.is_held and stopwatch - self._renewed < self._silent_s - self.renew_s

    def leave(self, now: float) -> None:
        """Give the lease back, so that another process need not wait."""
        if self.is_held:
            self.is_held = False
            if self._newest() == self._term:
                self._beat(now, has_left=True)
            self._term = 0

    def _renew(self, now: float, stopwatch: float) -> bool:
        if self._newest() != self._term:
            self._term = 0
            return False
        self._beat(now)
        self._renewed = stopwatch
        return True

    def _take(self, now: float, stopwatch: float) -> bool:
        term = self._newest()
        if term and not self._is_free(term, stopwatch):
            return False
        self._since = now
        said = msgspec.json.encode(self._holder(now))
        if not self._storage.create(_path(term + 1), said) or self._newest() != term + 1:
            return False
        self._term, self._renewed = term + 1, stopwatch
        self._beat(now)
        if term > _TERMS_KEPT:
            self._storage.delete(_path(term - _TERMS_KEPT), _beat_path(term - _TERMS_KEPT))
        return True

    def _is_free(self, term: int, stopwatch: float) -> bool:
        beat = self._storage.stat(_beat_path(term))
        seen = (term, "" if beat is None else beat.token)
        if seen != self._seen:
            self._seen, self._seen_at = seen, stopwatch
        holder = holder_of(self._storage, term)
        if holder is not None and (holder.has_left or has_ended(holder.process)):
            return True
        return stopwatch - self._seen_at >= self._silent_s

    def _beat(self, now: float, *, has_left: bool = False) -> None:
        said = msgspec.structs.replace(self._holder(now), has_left=has_left)
        self._storage.write(_beat_path(self._term), msgspec.json.encode(said))

    def _holder(self, now: float) -> Holder:
        pid = self._process.split()[0] if self._process else ""
        return Holder(
            self._process, socket.gethostname(), int(pid) if pid.isdecimal() else 0, since=self._since, at=now
        )

    def _newest(self) -> int:
        return newest_term(self._storage)


def newest_term(storage: Storage) -> int:
    """Return the number of the newest term; 0 if there never was a scheduler."""
    terms = (_TERM.fullmatch(entry.path) for entry in storage.list(f"{FOLDER}/terms"))
    return max((int(match[1]) for match in terms if match), default=0)


def holder_of(storage: Storage, term: int) -> Holder | None:
    """Return what the holder of a term said last."""
    data = storage.read(_beat_path(term)) or storage.read(_path(term))
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=Holder)
    except UNDECODABLE:
        return None


def _path(term: int) -> str:
    return f"{FOLDER}/terms/{term:09d}.json"


def _beat_path(term: int) -> str:
    return f"{FOLDER}/beats/{term:09d}.json"
