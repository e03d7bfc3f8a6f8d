"""The schedules of a project: numbered states of each, the next one created only if absent.

`pipelines/schedules/<name>/<number>.json` holds the whole state of a schedule. A writer that has read state 7 writes
state 8; if another process was faster, it reads that one and decides again. That alone makes every firing happen once,
with any number of schedulers, on any storage. Older states are deleted, but for a few.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import uuid4

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, nearest
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.pipelines.scheduling.policy.state import State
from cargobike.store.files.storage import Storage

FOLDER: Final = "pipelines/schedules"
BELL: Final = "pipelines/scheduler/changed"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
MOST_BYTES: Final = 8 << 20
_STATE: Final = re.compile(rf"{FOLDER}/({NAME.pattern})/([0-9]{{9}})\.json")
_STATES_KEPT: Final = 4
_TRIES: Final = 100

_decoder: msgspec.json.Decoder[State] = msgspec.json.Decoder(State)


class Kept(NamedTuple):
    """A state that is kept, with its number."""

    number: int
    state: State


class Book:
    """The schedules that a storage keeps.

    Of several processes that write the same number for a schedule exactly one is told that it has.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def numbers(self) -> dict[str, int]:
        """Return the number of the newest state of each schedule, those that were deleted too."""
        newest: dict[str, int] = {}
        for entry in self._storage.list(FOLDER, deep=True):
            if match := _STATE.fullmatch(entry.path):
                newest[match[1]] = max(int(match[2]), newest.get(match[1], 0))
        return newest

    def read(self, name: str, number: int = 0) -> Kept | None:
        """Return the newest state of a schedule; `None` if there was never one.

        Args:
            name: The schedule.
            number: A state that is known to have been written, if any: those after it are looked for one by one.

        Raises:
            StoreError: If it cannot be read.
        """
        if not number:
            numbers = [
                int(match[2])
                for entry in self._storage.list(f"{FOLDER}/{name}")
                if (match := _STATE.fullmatch(entry.path)) and match[1] == name
            ]
            if not numbers:
                return None
            number = max(numbers)
        while (data := self._storage.read(_path(name, number))) is not None:
            following = self._storage.stat(_path(name, number + 1))
            if following is None:
                return Kept(number, _decode(data, name))
            number += 1
        return self.read(name)  # it was deleted long ago: this process has slept

    def write(self, kept: Kept) -> bool:
        """Write the state of a number; returns whether it was this call that did.

        Raises:
            StoreError: If it cannot be written.
        """
        name, number = kept.state.name, kept.number
        if not self._storage.create(_path(name, number), msgspec.json.encode(kept.state)):
            return False
        if number > 1 and self._storage.stat(_path(name, number - 1)) is None:
            # The number had been used and deleted while this process slept: far below what is kept, no reader looks.
            self._storage.delete(_path(name, number))
            return False
        if number > _STATES_KEPT:
            # One by one and the oldest first, so that a gap is always below everything that is kept.
            self._storage.delete(_path(name, number - _STATES_KEPT))
        return True

    def change(self, name: str, decide: Callable[[State | None], State]) -> State:
        """Change a schedule, again and again until no other process was faster.

        Args:
            name: The schedule.
            decide: From the newest state to the next one; the very same one if nothing changes. It is given `None` if
                there is no such schedule, and may raise.

        Raises:
            StoreError: If other processes were faster all the time.
        """
        for _ in range(_TRIES):
            kept = self.read(name)
            before = None if kept is None else kept.state
            after = decide(before)
            if after is before:
                return after
            if self.write(Kept((kept.number if kept else 0) + 1, after)):
                self.ring()
                return after
        raise StoreError(f"Other processes changed the schedule {name!r} all the time; nothing was changed. Try again.")

    def schedule(self, name: str) -> State:
        """Return a schedule that was not deleted.

        Raises:
            NotFoundError: If there is none of that name.
        """
        kept = self.read(name) if NAME.fullmatch(name) else None
        if kept is None or kept.state.is_removed:
            names = sorted(state.name for state in self.schedules())
            known = f"there are {', '.join(names)}" if names else "there is none"
            raise NotFoundError(
                f"There is no schedule {name!r} in this project; {known}.{nearest(name, names)}", wanted=name
            )
        return kept.state

    def schedules(self) -> list[State]:
        """Return all schedules that were not deleted, by name; one that cannot be read is left out."""
        states = []
        for name, number in sorted(self.numbers().items()):
            try:
                kept = self.read(name, number)
            except InvalidInputError:
                continue
            if kept is not None and not kept.state.is_removed:
                states.append(kept.state)
        return states

    def ring(self) -> None:
        """Tell schedulers that a user has changed something."""
        self._storage.write(BELL, uuid4().hex.encode())

    def bell(self) -> str:
        """Return what differs after each `ring`."""
        entry = self._storage.stat(BELL)
        return "" if entry is None else entry.token


def read_name(name: str) -> str:
    """Return the name of a schedule if it can be one.

    Raises:
        InvalidInputError: If it cannot.
    """
    if not NAME.fullmatch(name):
        raise InvalidInputError(
            f"{name!r} cannot be the name of a schedule: write up to 64 letters, digits, '_', '-' and '.', "
            "beginning with a letter or digit."
        )
    return name


def _path(name: str, number: int) -> str:
    return f"{FOLDER}/{name}/{number:09d}.json"


def _decode(data: bytes, name: str) -> State:
    try:
        state = _decoder.decode(data)
    except UNDECODABLE as error:
        raise InvalidInputError(
            f"What is kept of the schedule {name!r} cannot be read ({error}); a newer version of Cargobike may have "
            f"written it. Update, or delete {FOLDER}/{name} and schedule it again."
        ) from error
    if state.name != name:
        raise InvalidInputError(f"What is kept of the schedule {name!r} belongs to {state.name!r}.")
    return state
