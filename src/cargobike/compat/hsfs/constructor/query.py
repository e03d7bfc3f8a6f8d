"""Queries of Hopsworks: features of groups, joined by their keys, right in time, as data that views can keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from cargobike import features
from cargobike.compat.hsfs.constructor.filter import Logic, Place, fill
from cargobike.compat.hsfs.frames import ROW, as_pandas, give, read_names
from cargobike.compat.hsfs.moments import read_moment
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError
from cargobike.features.queries.joins import Join, join_groups


class Selected(msgspec.Struct, frozen=True):
    """Columns of a version of a group."""

    group: str
    version: int
    columns: tuple[str, ...]

    def opened(self) -> features.Group:
        """Return the group."""
        return features.group(self.group, self.version)


class Joined(msgspec.Struct, frozen=True):
    """What is joined with the rows of the first group, and how.

    Attributes:
        selected: The columns.
        on: Columns of the rows, in the order of `key`.
        key: The columns of the joined group that they are compared with.
        how: `left` or `inner`.
        prefix: What its columns are called with in front.
    """

    selected: Selected
    on: tuple[str, ...]
    key: tuple[str, ...]
    how: str = "left"
    prefix: str = ""


class Condition(msgspec.Struct, frozen=True):
    """A condition, as `Logic` has it."""

    text: str
    places: tuple[tuple[str, int, str], ...]


class Asked(msgspec.Struct, frozen=True):
    """What a query asks for, as a view keeps it."""

    rows: Selected
    joins: tuple[Joined, ...] = ()
    where: tuple[Condition, ...] = ()
    commits: dict[str, int] = {}

    @property
    def parts(self) -> list[tuple[Selected, str]]:
        """All groups whose columns are asked for, with the prefix of each."""
        return [(self.rows, ""), *((join.selected, join.prefix) for join in self.joins)]

    def columns(self) -> dict[str, Place]:
        """Return the columns of the result in order, and where each comes from."""
        found: dict[str, Place] = {}
        for number, (selected, prefix) in enumerate(self.parts):
            for feature in selected.columns:
                join = self.joins[number - 1] if number else None
                name = prefix + feature
                if join is not None and name in found:
                    if feature in join.key and not prefix:
                        continue  # the same value, by which they were joined
                    name = f"{selected.group}_{feature}"
                found[name] = Place(selected.group, selected.version, feature)
        return found

    def query(self, more: Sequence[str] = ()) -> features.Query:
        """Return it as a query of ours.

        Args:
            more: Columns of the first group that the result has too, behind the others.
        """
        columns = self.columns()
        own = {name: place.feature for name, place in columns.items() if place.group == self.rows.group}
        for name in more:
            own.setdefault(name, name)
        output = list(dict.fromkeys([*columns, *more]))
        looked_up = {
            join.selected.group: {
                name: place.feature for name, place in columns.items() if place.group == join.selected.group
            }
            for join in self.joins
        }
        where = []
        for condition in self.where:
            names = []
            for group, _, feature in condition.places:
                name = f"__f{sum(len(some) for some in looked_up.values()) + len(own)}"
                if group not in {"", self.rows.group, *looked_up}:
                    raise InvalidInputError(f"{feature!r} belongs to {group}, which is not in this query.")
                looked_up.get(group, own)[name] = feature
                names.append(name)
            where.append(fill(condition.text, names))
        joins = [
            Join(join.selected.opened(), _in_order(join), looked_up[join.selected.group], required=join.how == "inner")
            for join in self.joins
        ]
        return join_groups(self.rows.opened(), own, joins, output=output, where=where, commits=self.commits or None)


class Query:
    """Features of a group and of others that are joined with it; nothing is read before rows are asked for."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __repr__(self) -> str:
        return f"Query({', '.join(self.asked.columns())})"

    @property
    def features(self) -> list[str]:
        """Names of its columns."""
        return list(self.asked.columns())

    @formerly("hsfs.constructor.query.Query.join")
    def join(
        self,
        sub_query: Query,
        on: str | Sequence[Any] | None = None,
        left_on: str | Sequence[Any] | None = None,
        right_on: str | Sequence[Any] | None = None,
        join_type: str = "left",
        prefix: str | None = None,
    ) -> Query:
        """Return the query with another one joined to it.

        Each row gets the values that were true at its event time. Groups are joined by the key of the other one;
        without `on` it is the key that both have.
        """
        if join_type.lower() not in {"left", "inner"}:
            raise InvalidInputError(
                f"join_type={join_type!r} was given; here rows of the first group are kept: 'left' and 'inner'."
            )
        other = sub_query.asked
        if other.joins or other.where:
            raise InvalidInputError("The query that is joined has joins or filters of its own; put them on the outer.")
        key = other.rows.opened().definition.key
        mine = self.asked.rows.opened()
        right = read_names(right_on) or read_names(on)
        left = read_names(left_on) or read_names(on)
        if not right:
            there = {*mine.definition.key, *mine.definition.features}
            right = [name for name in key if name in mine.definition.key] or [name for name in key if name in there]
            left = list(right)
        if set(right) != set(key) or len(left) != len(right):
            raise InvalidInputError(
                f"{other.rows.group} has the key {', '.join(key)}, and is to be joined by "
                f"{', '.join(right) or 'nothing'}. Rows are found by the whole key of the group that is joined: give "
                "on=[…], or left_on=[…], right_on=[…]."
            )
        joined = Joined(other.rows, tuple(left), tuple(right), join_type.lower(), prefix or "")
        commits = {**self.asked.commits, **other.commits}
        return Query(msgspec.structs.replace(self.asked, joins=(*self.asked.joins, joined), commits=commits))

    @formerly("hsfs.constructor.query.Query.filter")
    def filter(self, f: Logic) -> Query:
        """Return the query with a condition: `query.filter((fg.amount > 3) & (fg.country == "SE"))`."""
        return Query(filtered(self.asked, f))

    def as_of(self, wallclock_time: Any = None, exclude_until: Any = None) -> Query:
        """Return the query on what its groups held at a time."""
        if exclude_until is not None:
            raise InvalidInputError("exclude_until is not kept by queries; use fg.read_changes(start, end).")
        if wallclock_time is None:
            return self
        commits = {one.group: commit_at(one.opened(), wallclock_time) for one, _ in self.asked.parts}
        return Query(msgspec.structs.replace(self.asked, commits=commits))

    @formerly("hsfs.constructor.query.Query.read")
    def read(self, online: bool = False, dataframe_type: str = "default", read_options: Any = None) -> Any:
        """Return the rows: a Spark DataFrame where a session is active, else a pandas DataFrame."""
        return self.rows(dataframe_type)

    def rows(self, kind: str) -> Any:
        """Return the rows as a frame of some kind; internal."""
        query = self.asked.query()
        return give(kind, query.to_arrow, query.to_spark)

    def show(self, n: int, online: bool = False) -> Any:
        """Return the first rows."""
        return as_pandas(self.asked.query().head(n).to_arrow())

    def to_string(self, online: bool = False, arrow_flight: bool = False) -> str:
        """Return how it is answered, in words."""
        return str(self.asked.query().explain())


def filtered(asked: Asked, condition: Logic) -> Asked:
    """Return what is asked for, of the rows that fit a condition.

    Raises:
        InvalidInputError: If it is anything else.
    """
    if not isinstance(condition, Logic):
        raise InvalidInputError(f"{condition!r} was given; a condition such as fg.amount > 3 is needed.")
    places = tuple((place.group, place.version, place.feature) for place in condition.places)
    return msgspec.structs.replace(asked, where=(*asked.where, Condition(condition.text, places)))


def select(group: features.Group, columns: Sequence[str]) -> Query:
    """Return a query for columns of a group."""
    return Query(Asked(Selected(group.name, group.version, tuple(name for name in columns if name != ROW))))


def commit_at(group: features.Group, moment: Any) -> int:
    """Return the commit that a group had at a time, as Hopsworks writes times."""
    wanted = read_moment(moment).timestamp()
    numbers = [commit.number for commit in group.history() if commit.time.timestamp() <= wanted]
    if not numbers:
        raise InvalidInputError(f"The group {group.name} had no rows yet at {moment}.")
    return max(numbers)


def _in_order(join: Joined) -> tuple[str, ...]:
    by_key = dict(zip(join.key, join.on, strict=True))
    return tuple(by_key[name] for name in join.selected.opened().definition.key)
