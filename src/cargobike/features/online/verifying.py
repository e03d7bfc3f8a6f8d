"""Compare what look-ups give with the newest rows of a group."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.features.online.latest import latest_rows
from cargobike.features.online.packing import Packing
from cargobike.features.online.stores.keys import pack_keys
from cargobike.features.online.stores.store import OnlineStore, Reader
from cargobike.features.queries.planning import rows_of
from cargobike.features.reading import ReadGroup

_SHOWN: Final = 10
_AT_ONCE: Final = 10_000
_ATTEMPTS: Final = 5


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
        at_us: When the rows that look-ups give were written, in microseconds since 1970.
    """

    group: str
    commit: int
    newest: int
    checked: int
    missing: int = 0
    extra: int = 0
    differing: int = 0
    examples: tuple[str, ...] = ()
    at_us: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether look-ups give what the group holds."""
        return not (self.missing or self.extra or self.differing)


def verify(group: ReadGroup, store: OnlineStore, sample: int | None = None) -> Verification:
    """Compare look-ups of a group with its newest rows, as they were when it was materialized.

    Args:
        group: The group.
        store: Where its newest rows are looked up.
        sample: How many keys to compare, drawn at random; by default all.

    Raises:
        StoreError: If the group was never materialized, or is being materialized all the time.
    """
    with closing(store.reader()) as reader:
        for _ in range(_ATTEMPTS):
            found = _compared(group, reader, sample)
            state = reader.state()
            if state is not None and state.commit == found.commit and state.at_us == found.at_us:
                return found
    raise StoreError(f"The group {group.name} is being materialized all the time; verify it when that has ended.")


def _compared(group: ReadGroup, reader: Reader, sample: int | None) -> Verification:
    definition = group.definition
    state = reader.state()
    if state is None:
        raise StoreError(f"The group {group.name} was never materialized. Call group.materialize() first.")
    packing = Packing(state.format, state.number)
    packed = msgspec.structs.replace(definition, features=dict(state.format.features))
    table = latest_rows(rows_of(group, state.commit), packed, state.at_us, sample=sample)
    keys = pack_keys(table, definition.key)
    expected = dict(zip(keys, packing.pack(table, definition.event_time), strict=True))
    found: dict[Any, bytes] = {}
    for some in _pieces(keys):
        found.update(reader.get_all(some))
    total = reader.count()
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
        state.at_us,
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
