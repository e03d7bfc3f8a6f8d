"""A query for features: lazy; nothing is read before rows are asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.lazy import load
from cargobike.features.joining import duckdb as in_duckdb
from cargobike.features.joining.spine import TIME, Spine, spine_of
from cargobike.features.queries.explaining import Explanation, explain
from cargobike.features.queries.labels import as_table
from cargobike.features.queries.planning import Plan, rows_of

_ON_SPARK = "cargobike.features.joining.spark:query"
"""By name, so that Spark is loaded only where it is used."""


_SETTINGS: dict[str, Any] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""A condition sees the rows, not variables of the program, and nothing is downloaded for it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Which rows are wanted: a condition as SQL writes it, or values that columns must have."""

    text: str = ""
    equal: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """Features that were asked for by name, joined when rows are wanted; made by `get_features` and by views."""

    plan: Plan
    labels: Any = None
    steps: tuple[Condition | int, ...] = ()
    """What happens to the joined rows, in this order: those that fit a condition are kept, or so many of the first."""
    commits: Mapping[str, int] | None = None
    """The commit at which each group is read; `None` for the newest."""

    def __repr__(self) -> str:
        groups = ", ".join(group.name for group in self.plan.groups)
        return f"Query({', '.join(self.plan.output)}; from {groups}). Rows: to_pandas(), show(); how: explain()."

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the result."""
        return list(self.plan.output)

    def filter(self, condition: str = "", /, **equal: Any) -> Query:
        """Keep only some rows of the result.

        Args:
            condition: As SQL writes it, such as `"budget > 100 AND city IS NOT NULL"`.
            equal: Values that columns must have: `team_id=3`.
        """
        if not condition and not equal:
            raise InvalidInputError("filter() was called without a condition; write filter('budget > 100').")
        return replace(self, steps=(*self.steps, Condition(condition, tuple(equal.items()))))

    def head(self, rows: int = 10) -> Query:
        """Keep only the first rows of the result."""
        if rows < 0:
            raise InvalidInputError(f"head({rows!r}) was called; give a number of rows.")
        return replace(self, steps=(*self.steps, rows))

    def known_at(self, known_at: str) -> Query:
        """Count only what was known at the time of each row: `"commit"`, or a column that says since when."""
        return replace(self, plan=self.plan.knowing(known_at))

    def pinned(self) -> Query:
        """Return the same query, which reads what its groups hold now, whatever is inserted later.

        Groups that are read as they were at a commit stay there.
        """
        return replace(
            self, commits={group.name: group.commit for group in self.plan.groups} | dict(self.commits or {})
        )

    def explain(self) -> Explanation:
        """Say what was inferred: owners, keys, times; and how many values were written after their row's time."""
        return explain(self.plan, self._spine() if self.plan.lookups else None, self.commits or {})

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        spine = self._spine()
        if self.steps and isinstance(first := self.steps[0], int):
            times = None if spine.times is None else spine.times.slice(0, first)
            spine = Spine(spine.table.slice(0, first), times)
        commits = self.commits or {}
        sides = [lookup.side(commits.get(lookup.group.name), self.plan.known_at) for lookup in self.plan.lookups]
        table = in_duckdb.join(spine, sides)
        for step in self.steps:
            table = table.slice(0, step) if isinstance(step, int) else _fitting(table, step)
        return table.select(self.columns)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame."""
        return load("polars:from_arrow")(self.to_arrow())

    def to_spark(self, session: Any = None) -> Any:
        """Return the rows as a Spark DataFrame, joined by Spark; as always there, computed when it is used.

        Args:
            session: The `SparkSession`; by default the active one.
        """
        return load(_ON_SPARK)(self, session)

    def show(self, rows: int = 20) -> None:
        """Print the first rows."""
        sys.stdout.write(self.head(rows).to_pandas().to_string(index=False) + "\n")

    def _spine(self) -> Spine:
        """Return the rows that values are looked up for, with their times."""
        plan = self.plan
        if plan.rows is None:
            return spine_of(as_table(self.labels), plan.time)
        definition = plan.rows.definition
        needed = [
            *definition.key,
            *([plan.time] if plan.time else []),
            *(key for each in plan.lookups for key in each.on),
        ]
        rows = rows_of(plan.rows, (self.commits or {}).get(plan.rows.name))
        columns = {name: pc.field(name) for name in needed} | {name: pc.field(own) for name, own in plan.own.items()}
        table = rows.to_table(columns=columns)
        if plan.now_us is not None:
            return Spine(table, pa.chunked_array([pa.repeat(pa.scalar(plan.now_us, TIME), len(table))], TIME))
        return spine_of(table, plan.time)


def _fitting(table: pa.Table, condition: Condition) -> pa.Table:
    """Return the rows of a table that fit a condition, in their order."""
    parts = [f"({condition.text})"] if condition.text else []
    unknown = [name for name, _ in condition.equal if name not in table.column_names]
    if unknown:
        raise InvalidInputError(f"filter({', '.join(unknown)}=…): the columns are {', '.join(table.column_names)}.")
    quoted = ['"' + name.replace('"', '""') + '"' for name, _ in condition.equal]
    parts += [f"{name} IS NOT DISTINCT FROM ?" for name in quoted]
    with duckdb.connect(":memory:", config=_SETTINGS) as connection:
        connection.register("rows", table)
        text = f"SELECT * FROM rows WHERE {' AND '.join(parts)}"
        try:
            found = connection.sql(text, params=[value for _, value in condition.equal]).to_arrow_table()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            names = ", ".join(table.column_names)
            raise InvalidInputError(
                f"The condition {condition.text!r} cannot be used: {reason}. Columns are {names}."
            ) from error
    return found.cast(table.schema)
