"""What others say about a monitor while it runs: acknowledgements, comparisons. Numbered files, created only if absent.

The journal has one writer, the watcher. Notes may come from any process on any host, so each is a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.monitoring.kind import MONITORS
from cargobike.store.assets.numbering import create_next, newest_number
from cargobike.store.files.storages import storage_of

_NOTES: Final = "notes"


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True, tag="acknowledged"):
    """A person has seen an alarm."""

    at: float
    alarm: str
    by: str
    note: str = ""


class Compared(msgspec.Struct, frozen=True, kw_only=True, tag="compared"):
    """Two versions of a model on the newest labelled rows.

    Attributes:
        at: When they were compared.
        champion: The version that serves: `digits:3`.
        challenger: The version that may take its place.
        metric: What was measured; lower is better.
        champion_error: What it is for the champion.
        challenger_error: What it is for the challenger.
        low: Where the difference (challenger minus champion) begins, with 95 % confidence.
        high: Where it ends.
        rows: On how many labelled rows.
        first_at: When the first of their requests came.
        last_at: When the last one came.
        better: Whether the challenger is better by more than chance allows.
    """

    at: float
    champion: str
    challenger: str
    metric: str
    champion_error: float
    challenger_error: float
    low: float
    high: float
    rows: int
    first_at: float
    last_at: float
    better: bool


Note = Acknowledged | Compared


def add_note(project: ProjectFolder, name: str, note: Note) -> int:
    """Keep a note; return its number."""
    storage = storage_of(project)
    newest = newest_number(storage, lambda number: _path(name, number))
    return create_next(
        storage, lambda number: _path(name, number), lambda _: msgspec.json.encode(note), first=newest + 1
    )


def read_notes(project: ProjectFolder, name: str) -> Iterator[Note]:
    """Yield the notes about a monitor, the oldest first.

    Raises:
        StoreError: If one cannot be understood.
    """
    storage = storage_of(project)
    for number in range(1, newest_number(storage, lambda number: _path(name, number)) + 1):
        path = _path(name, number)
        data = storage.read(path)
        if data is None:
            continue
        try:
            yield msgspec.json.decode(data, type=Note)
        except msgspec.DecodeError as error:
            raise StoreError(f"{storage}/{path} is damaged: {error}") from error


def _path(name: str, number: int) -> str:
    return MONITORS.place(name, _NOTES, f"{number}.json")
