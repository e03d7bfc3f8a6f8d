"""How rows of a feature view become parts: by share, or by event time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cargobike import features
from cargobike.compat.hsfs.constructor.filter import Logic, Place, compare
from cargobike.compat.hsfs.constructor.query import Asked, filtered
from cargobike.compat.hsfs.moments import read_moment
from cargobike.core.errors import InvalidInputError

Range = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Split:
    """Parts that were asked for.

    Attributes:
        ranges: From when, and until when, each part is; empty texts if that was not said.
        shares: The share of each part but the first; empty if times say it.
        seed: What draws the parts.
    """

    ranges: Mapping[str, Range]
    shares: Mapping[str, float]
    seed: int = 0

    @property
    def is_by_time(self) -> bool:
        """Whether each part has a time of its own."""
        return len(self.ranges) > 1 and not self.shares

    @property
    def by(self) -> str:
        """How rows are split, as our training datasets call it."""
        return "time" if self.is_by_time else "rows"

    def chosen(self, asked: Asked) -> Asked:
        """Return the query for the rows of all parts."""
        if not self.is_by_time:
            start, end = self._whole()
            return within(asked, start, end)
        conditions = [condition for one in self.ranges.values() if (condition := _between(asked, *one)) is not None]
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = whole | condition
        return filtered(asked, whole)

    def shares_in(self, asked: Asked) -> dict[str, float]:
        """Return the share of each part: what was said, or how many rows its time has."""
        if not self.is_by_time:
            return {"train": 1 - sum(self.shares.values()), **self.shares}
        rows = {name: within(asked, *one).query().to_arrow().num_rows for name, one in self.ranges.items()}
        empty = [name for name, count in rows.items() if not count]
        if empty:
            times = ", ".join(f"{name} from {self.ranges[name][0]} to {self.ranges[name][1]}" for name in empty)
            raise InvalidInputError(f"There are no rows at these times: {times}.")
        total = sum(rows.values())
        return {name: count / total for name, count in rows.items()}

    def _whole(self) -> Range:
        starts = [start for start, _ in self.ranges.values() if start]
        ends = [end for _, end in self.ranges.values() if end]
        return (starts[0] if starts else "", ends[-1] if ends else "")


def split_of(
    *,
    train: Range,
    test: Range | None = None,
    validation: Range | None = None,
    shares: Mapping[str, float | None],
    seed: int | None = None,
) -> Split:
    """Return what was asked for.

    Raises:
        InvalidInputError: If neither shares nor times say what the parts are.
    """
    ranges = {"train": train}
    ranges |= {name: one for name, one in (("validation", validation), ("test", test)) if one is not None}
    given = {name: float(share) for name, share in shares.items() if share}
    if given and len(given) != len(shares):
        raise InvalidInputError(f"Give the size of each part: {', '.join(f'{name}_size' for name in shares)}.")
    if not given and len(ranges) > 1:
        ranges = _with_borders(ranges)
        lacking = [name for name, (start, end) in ranges.items() if not (start or end)]
        if lacking:
            raise InvalidInputError(
                f"Which rows are for {', '.join(lacking)}? Give {' and '.join(f'{name}_size' for name in shares)}, or "
                "times such as train_end and test_start."
            )
    return Split(ranges, given, 0 if seed is None else seed)


def within(asked: Asked, start: Any, end: Any) -> Asked:
    """Return a query for the rows from one time on, and before another one."""
    condition = _between(asked, start, end)
    return asked if condition is None else filtered(asked, condition)


def part_tables(name: str, version: int, parts: Sequence[str]) -> list[pa.Table]:
    """Return parts of a training dataset.

    Raises:
        InvalidInputError: If it has other parts.
    """
    dataset = features.training_dataset(name, version)
    there = [part.name for part in dataset]
    if there != list(parts):
        raise InvalidInputError(
            f"The training dataset {name}:{version} has the parts {', '.join(there)}; {', '.join(parts)} were wanted."
        )
    return [dataset[part].to_arrow() for part in parts]


def _between(asked: Asked, start: Any, end: Any) -> Logic | None:
    rows = asked.rows.opened().definition
    conditions: list[Logic] = []
    if not start and not end:
        return None
    if not rows.event_time:
        raise InvalidInputError(f"{rows.name} has no event time, so its rows cannot be chosen by time.")
    place = Place(rows.name, rows.version, rows.event_time)
    if start:
        conditions.append(compare(place, ">=", read_moment(start)))
    if end:
        conditions.append(compare(place, "<", read_moment(end)))
    return conditions[0] if len(conditions) == 1 else conditions[0] & conditions[1]


def _with_borders(ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Return times of parts, each of which ends where the next one begins unless something else was said."""
    names = list(ranges)
    found = dict(ranges)
    for before, after in itertools.pairwise(names):
        start, end = found[before]
        begin, until = found[after]
        found[before] = (start, end or begin)
        found[after] = (begin or end, until)
    return found
