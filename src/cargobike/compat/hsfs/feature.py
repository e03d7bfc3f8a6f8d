"""A feature, by which rows are chosen: `fg.amount > 3`, `fg["country"].isin(["SE", "DE"])`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cargobike.compat.hsfs.constructor.filter import Filter, Place, compare, is_in
from cargobike.compat.hsfs.frames import column_name


class Feature:
    """A column of a feature group; without a group, part of a schema: `Feature("amount", type="double")`.

    Args:
        name: Its name.
        type: Its type, as Hive or we write it.
        description: What it holds.
        primary: Whether it belongs to the key.
        place: The group that owns it.
        more: What means nothing here: partitions, types of other databases.
    """

    def __init__(
        self,
        name: str,
        type: str | None = None,
        description: str | None = None,
        primary: bool = False,
        *,
        place: Place | None = None,
        **more: Any,
    ) -> None:
        self.name = column_name(name)
        self.type = type
        self.description = description
        self.primary = primary
        self.place = place or Place("", 0, self.name)
        self.more = more

    def __repr__(self) -> str:
        return f"Feature({self.name!r}, {self.type!r})"

    def isin(self, other: Iterable[Any]) -> Filter:
        """Return the condition that it has one of some values."""
        return is_in(self.place, other)

    def like(self, other: str) -> Filter:
        """Return the condition that it fits a pattern of SQL."""
        return compare(self.place, "LIKE", other)

    def contains(self, other: Any) -> Filter:
        """Return the condition that it has one of some values."""
        return is_in(self.place, [other] if isinstance(other, str) or not isinstance(other, Iterable) else other)

    def __lt__(self, other: Any) -> Filter:
        return compare(self.place, "<", other)

    def __le__(self, other: Any) -> Filter:
        return compare(self.place, "<=", other)

    def __gt__(self, other: Any) -> Filter:
        return compare(self.place, ">", other)

    def __ge__(self, other: Any) -> Filter:
        return compare(self.place, ">=", other)

    def __eq__(self, other: object) -> Filter:  # type: ignore[override]  # a condition, not a truth
        return compare(self.place, "=", other)

    def __ne__(self, other: object) -> Filter:  # type: ignore[override]  # a condition, not a truth
        return compare(self.place, "!=", other)

    __hash__ = None  # type: ignore[assignment]  # nothing is equal to a feature


def our_type(kind: str) -> str:
    """Return a type of Hive, such as `bigint`, as groups call it."""
    names = {
        "tinyint": "int8",
        "smallint": "int16",
        "int": "int32",
        "integer": "int32",
        "bigint": "int64",
        "boolean": "bool",
    }
    kind = kind.lower().strip()
    if kind.startswith("array<"):
        return f"list<{our_type(kind[6:-1])}>"
    return names.get(kind, kind)
