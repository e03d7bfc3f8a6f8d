"""Compare what look-ups give with the newest rows of a group."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.features.online.latest import latest_rows
from cargobike.features.online.packing import Packing
from cargobike.features.online.store import file_of, open_reader, pack_keys, read_state
from cargobike.features.queries.planning import rows_of
from cargobike.features.reading import ReadGroup

_SHOWN: Final = 10
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Verification:
    """How look-ups of a group differ from its newest rows.

    Attributes:
        group: Its name.
        commit: The commit whose rows look-ups give.
        newest: The newest commit; what came after `commit` was not materialized yet, and is no difference.
        checked: How many keys were compared.
        missing: How many of them look-ups do not find.
        extra: How many look-ups find that are not in the group; only counted if all keys were compared.
        differing: How many have other values.
        examples: Some keys that differ, and how.
    """

    group: str
    commit: int
    newest: int
    checked: int
    missing: int = 0
    extra: int = 0
    differing: int = 0
    examples: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether look-ups give what the group holds."""
        return not (self.missing or self.extra or self.differing)


def verify(group: ReadGroup, root: Path, sample: int | None = None) -> Verification:
    """Compare look-ups of a group with its newest rows, as they were when it was materialized.

    Args:
        group: The group.
        root: The local folder of its project.
        sample: How many keys to compare, drawn at random; by default all.

    Raises:
        StoreError: If the group was never materialized.
    """
    definition = group.definition
    with closing(open_reader(file_of(root, definition))) as connection:
        connection.execute("BEGIN")  # one state, also while the next one is being written
        state = read_state(connection)
        if state is None:
            raise StoreError(f"The group {group.name} was never materialized. Call group.materialize() first.")
        packing = Packing(state.format, state.number)
        packed = msgspec.structs.replace(definition, features=dict(state.format.features))
        table = latest_rows(rows_of(group, state.commit), packed, state.at_us, sample=sample)
        keys = pack_keys(table, definition.key)
        expected = dict(zip(keys, packing.pack(table, definition.event_time), strict=True))
        found: dict[Any, bytes] = {}
        for some in _pieces(keys):
            marks = ",".join("?" * len(some))
            found.update(connection.execute(f"SELECT key, value FROM rows WHERE key IN ({marks})", some).fetchall())
        total = connection.execute("SELECT count(*) FROM rows").fetchone()[0]
    missing = [key for key in keys if key not in found]
    differing = [key for key, row in found.items() if row != expected[key]]
    examples = [f"{key!r} is not found" for key in missing[:_SHOWN]]
    examples += [_difference(key, packing, expected[key], found[key]) for key in differing[:_SHOWN]]
    return Verification(
        group.name,
        state.commit,
        group.commit,
        len(keys),
        len(missing),
        total - len(found) if sample is None else 0,
        len(differing),
        tuple(examples),
    )


def _pieces(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE))


def _difference(key: Any, packing: Packing, expected: bytes, found: bytes) -> str:
    """Say in which features a row differs, as far as it can be read."""
    try:
        wanted, there = packing.unpack(expected), packing.unpack(found)
        names = [name for name in packing.names if packing.value(name, *wanted) != packing.value(name, *there)]
    except (struct.error, msgspec.DecodeError, IndexError):
        return f"{key!r} cannot be read"
    return f"{key!r} differs in {', '.join(names) or 'its event time'}"
