"""What every store for look-ups does, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import msgspec

from cargobike.features.online.packing import Format

TIMEOUT_S: Final = 60.0
"""How long a writer waits for another one."""


class State(msgspec.Struct, frozen=True):
    """What a store holds of a group.

    Attributes:
        commit: The commit of the group whose newest rows these are.
        number: Counts the formats that rows have had.
        format: The format of the rows.
        key: Types of the key, as Arrow writes them.
        at_us: When it was written, in microseconds since 1970; rows that become true later are not in it.
        due_us: When the next row becomes true that is not yet; `None` if there is none.
        table: The id of the group's table: a group that was made anew under the same name has another one.
    """

    commit: int
    number: int
    format: Format
    key: tuple[str, ...]
    at_us: int
    due_us: int | None = None
    table: str = ""


class Overtaken(Exception):  # noqa: N818 - no failure: the caller looks again
    """Another process has changed the store since this one began: nothing was written."""


class Reader(Protocol):
    """Finds packed rows; used by one thread. Each call sees whole materializations only."""

    def get(self, key: Any) -> bytes | None:
        """Return the row of a key, `None` if there is none.

        Raises:
            OverflowError: If no group can have such a key; `UnicodeEncodeError` likewise.
            StoreError: If the store cannot be reached, or has nothing of the group any more.
        """
        ...

    def get_all(self, keys: Sequence[Any]) -> dict[Any, bytes]:
        """Return the rows of those keys that have one."""
        ...

    def state(self) -> State | None:
        """Return what the store holds; `None` if nothing was ever written."""
        ...

    def count(self) -> int:
        """Return how many keys have a row."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class Writer(Protocol):
    """Changes the rows of a group, as one change: all of it is seen at the end, or nothing."""

    def state(self) -> State | None:
        """Return what the store holds before the change."""
        ...

    def clear(self) -> None:
        """Forget all rows, before others are written."""
        ...

    def put(self, keys: Sequence[Any], times: Sequence[int], rows: Sequence[bytes], *, if_newer: bool = False) -> None:
        """Write rows.

        Args:
            keys: Their keys, each once.
            times: Their event times, as in the rows.
            rows: The packed rows.
            if_newer: Keep a row that is there if its event time is later.
        """
        ...

    def remove(self, keys: Sequence[Any]) -> None:
        """Forget the rows of keys."""
        ...

    def finish(self, state: State) -> None:
        """Say what the store holds after the change; called last."""
        ...


class OnlineStore(Protocol):
    """Keeps the newest rows of one version of a group: one packed row for each key.

    Guarantees: look-ups go on while it is written, and see all of a change or nothing. A writer that is killed leaves
    what was there before. Of several writers one comes after the other, or is told that it was overtaken. Every wait
    has an end.
    """

    def reader(self) -> Reader:
        """Open it for look-ups in this thread.

        Raises:
            StoreError: If it is not there, or does not answer.
        """
        ...

    def writing(self, key: Sequence[str]) -> AbstractContextManager[Writer]:
        """Change it: visible when the block ends, unless that raises. A block that changes rows calls `finish`.

        Args:
            key: Types of the key.

        Raises:
            StoreError: If it cannot be written, or another process is writing it for a minute.
            Overtaken: If another process has changed it since the block began.
        """
        ...

    def drop(self) -> None:
        """Forget all rows, and that there were any: look-ups that are open are refused from then on.

        Raises:
            StoreError: If it cannot be written.
        """
        ...


def encode_state(state: State) -> bytes:
    """Return a state as stores keep it."""
    return msgspec.json.encode(state)


def decode_state(data: bytes | None) -> State | None:
    """Return a state that a store has kept; `None` for none, and for one that is not understood: it is written anew."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=State)
    except msgspec.DecodeError:
        return None
