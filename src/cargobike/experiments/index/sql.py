"""The index of experiments in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from cargobike.core.errors import NotFoundError
from cargobike.core.records import ExperimentState, TrialState
from cargobike.experiments.index.index import (
    EVERYWHERE,
    ExperimentRow,
    ExperimentSort,
    Index,
    TrialRow,
    TrialSort,
    Where,
)
from cargobike.experiments.index.tables import experiment_row, experiments, trial_row, trials
from cargobike.store.index.database import Database


class SqlIndex(Index):
    """An `Index` in a database that was opened for the tables of experiments."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def sync(self) -> None:
        """Catch up with all journals of the project."""
        self.database.sync()

    def rebuild(self) -> None:
        """Forget everything and read all journals again."""
        self.database.rebuild()

    def experiments(
        self,
        *,
        states: Sequence[ExperimentState] = (),
        where: Where = EVERYWHERE,
        sort: ExperimentSort = "started",
        descending: bool = True,
        limit: int | None = None,
    ) -> list[ExperimentRow]:
        """Return experiments, the newest first unless asked otherwise; those without the key come last."""
        table = experiments.c
        key: sa.ColumnElement[Any] = {
            "started": table.started_at,
            "name": table.name,
            "state": table.state,
            "best": table.best_value,
            "duration": sa.func.coalesce(table.ended_at, table.last_at) - table.started_at,
            "trials": sum((table[state.value] for state in TrialState), sa.literal(0)),
        }[sort]
        query = sa.select(experiments).where(table.project == self.database.key)
        query = query.order_by(
            key.is_(None), key.desc() if descending else key.asc(), table.started_at.desc(), table.id.desc()
        )
        if states:
            query = query.where(table.state.in_([state.value for state in states]))
        query = query.where(*_conditions(where))
        return [experiment_row(row) for row in self.database.rows(query.limit(limit))]

    def experiment(self, experiment_id: str) -> ExperimentRow:
        """Return one experiment by its full id; raises `NotFoundError`."""
        mine = sa.and_(experiments.c.project == self.database.key, experiments.c.id == experiment_id)
        rows = self.database.rows(sa.select(experiments).where(mine))
        if not rows:
            words = f"There is no experiment {experiment_id!r} in {self.database.project.root}."
            raise NotFoundError(words, wanted=experiment_id)
        return experiment_row(rows[0])

    def trials(
        self,
        experiment_id: str,
        *,
        states: Sequence[TrialState] = (),
        sort: TrialSort = "number",
        limit: int | None = None,
    ) -> list[TrialRow]:
        """Return trials of one experiment; `sort="best"` puts the best first, for either direction."""
        table = trials.c
        query = sa.select(trials).where(table.project == self.database.key, table.experiment_id == experiment_id)
        if states:
            query = query.where(table.state.in_([state.value for state in states]))
        if sort == "best":
            upward = self.experiment(experiment_id).header.direction == "max"
            query = query.order_by(table.value.is_(None), table.value.desc() if upward else table.value.asc())
        elif sort == "duration":
            spent = table.ended_at - table.started_at
            query = query.order_by(spent.is_(None), spent.desc())
        elif sort == "ended":
            query = query.order_by(table.ended_at.is_(None), table.ended_at.asc())
        return [trial_row(row) for row in self.database.rows(query.order_by(table.number.asc()).limit(limit))]

    def scores(self, experiment_id: str) -> list[tuple[int, float]]:
        """Return `(number, value)` of the trials with a finite value, in the order in which they ended."""
        table = trials.c
        query = sa.select(table.number, table.value).where(
            table.project == self.database.key, table.experiment_id == experiment_id, table.value.is_not(None)
        )
        rows = self.database.rows(query.order_by(table.ended_at.asc(), table.number.asc()))
        return [(row["number"], row["value"]) for row in rows]

    def names(self) -> list[tuple[str, str]]:
        """Return `(id, name)` of all experiments, the newest first."""
        table = experiments.c
        query = sa.select(table.id, table.name).where(table.project == self.database.key)
        query = query.order_by(table.started_at.desc(), table.id.desc())
        return [(row["id"], row["name"]) for row in self.database.rows(query)]

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self.database.close()


def _conditions(where: Where) -> list[sa.ColumnElement[bool]]:
    table = experiments.c
    conditions: list[sa.ColumnElement[bool]] = []
    if where.name:
        pattern = where.name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        is_pattern = "*" in pattern or "?" in pattern
        pattern = pattern.replace("*", "%").replace("?", "_") if is_pattern else f"%{pattern}%"
        conditions.append(table.name.ilike(pattern, escape="\\"))
    for tag in where.tags:
        conditions.append(table.tags.contains(msgspec.json.encode(tag).decode(), autoescape=True))
    if where.user:
        conditions.append(table.user == where.user)
    if where.since is not None:
        conditions.append(table.started_at >= where.since)
    if where.until is not None:
        conditions.append(table.started_at < where.until)
    return conditions
