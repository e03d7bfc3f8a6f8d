"""The index of experiments in a SQL database: what is asked, in SQL that every database has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

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
from cargobike.experiments.index.origins import ExperimentOrigin, decode_origins
from cargobike.experiments.index.rows import experiment_row, trial_row
from cargobike.store.index.light import Answers
from cargobike.store.index.watched import Row

_EXPERIMENT_KEYS: Final[Mapping[ExperimentSort, str]] = {
    "started": "started_at",
    "name": "name",
    "state": "state",
    "best": "best_value",
    "duration": "coalesce(ended_at, last_at) - started_at",
    "trials": " + ".join(state.value for state in TrialState),
}
_EVERYTHING: Final = 2**62
_MINE: Final = "project = :project"
_OF_ONE: Final = "project = :project AND experiment_id = :experiment"

Parameters = dict[str, Any]


class SqlIndex(Index):
    """An `Index` in a database that was opened for the tables of experiments."""

    def __init__(self, database: Answers) -> None:
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
        conditions, parameters = _conditions(where)
        key, way = _EXPERIMENT_KEYS[sort], "DESC" if descending else "ASC"
        rows = self._select(
            "experiments",
            [_MINE, *_one_of("state", states, parameters), *conditions],
            parameters,
            order=f"CASE WHEN {key} IS NULL THEN 1 ELSE 0 END, {key} {way}, started_at DESC, id DESC",
            limit=limit,
        )
        return [experiment_row(row) for row in rows]

    def experiment(self, experiment_id: str) -> ExperimentRow:
        """Return one experiment by its full id; raises `NotFoundError`."""
        rows = self._select("experiments", [_MINE, "id = :id"], {"id": experiment_id})
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
        key = {"number": "number", "best": "value", "duration": "ended_at - started_at", "ended": "ended_at"}[sort]
        is_downward = sort == "duration"
        if sort == "best":
            is_downward = self.experiment(experiment_id).header.direction == "max"
        parameters: Parameters = {"experiment": experiment_id}
        conditions = [_OF_ONE, *_one_of("state", states, parameters)]
        # In two questions, each of which a table with a hundred thousand rows answers from its own order.
        rows = self._select(
            "trials",
            [*conditions, f"{key} IS NOT NULL"],
            parameters,
            order=f"{key} {'DESC' if is_downward else 'ASC'}, number ASC",
            limit=limit,
        )
        left = None if limit is None else limit - len(rows)
        if sort != "number" and left != 0:
            without = [*conditions, f"{key} IS NULL"]
            rows = [*rows, *self._select("trials", without, parameters, order="number ASC", limit=left)]
        return [trial_row(row) for row in rows]

    def scores(self, experiment_id: str) -> list[tuple[int, float]]:
        """Return `(number, value)` of the trials with a finite value, in the order in which they ended."""
        rows = self._select(
            "trials",
            [_OF_ONE, "value IS NOT NULL"],
            {"experiment": experiment_id},
            columns="number, value",
            order="ended_at ASC, number ASC",
        )
        return [(row["number"], row["value"]) for row in rows]

    def names(self) -> list[tuple[str, str]]:
        """Return `(id, name)` of all experiments, the newest first."""
        rows = self._select("experiments", [_MINE], {}, columns="id, name", order="started_at DESC, id DESC")
        return [(row["id"], row["name"]) for row in rows]

    def origins(self) -> list[tuple[str, str, ExperimentOrigin]]:
        """Return id and name of each experiment that came from something, once with each thing, the newest first."""
        conditions = [_MINE, "origins <> '[]'"]
        rows = self._select(
            "experiments", conditions, {}, columns="id, name, origins", order="started_at DESC, id DESC"
        )
        return [(row["id"], row["name"], origin) for row in rows for origin in decode_origins(row["origins"])]

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self.database.close()

    def _select(
        self,
        table: str,
        conditions: Sequence[str],
        parameters: Mapping[str, Any],
        *,
        columns: str = "*",
        order: str = "1",
        limit: int | None = None,
    ) -> Sequence[Row]:
        name = self.database.name_of(table)
        query = f"SELECT {columns} FROM {name} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :most"  # noqa: S608
        most = _EVERYTHING if limit is None else limit
        return self.database.select(query, {**parameters, "project": self.database.key, "most": most})


def _one_of(column: str, values: Sequence[str], parameters: Parameters) -> list[str]:
    """Return the condition that a column has one of some values, which are added to the parameters; none for none."""
    names = {f"{column}{place}": str(value) for place, value in enumerate(values)}
    parameters |= names
    return [f"{column} IN ({', '.join(f':{name}' for name in names)})"] if names else []


def _conditions(where: Where) -> tuple[list[str], Parameters]:
    conditions, parameters = list[str](), Parameters()
    if where.name:
        pattern = _literal(where.name)
        is_pattern = "*" in pattern or "?" in pattern
        parameters["name"] = pattern.replace("*", "%").replace("?", "_") if is_pattern else f"%{pattern}%"
        conditions.append("lower(name) LIKE lower(:name) ESCAPE '!'")
    for place, tag in enumerate(where.tags):
        parameters[f"tag{place}"] = f"%{_literal(msgspec.json.encode(tag).decode())}%"
        conditions.append(f"tags LIKE :tag{place} ESCAPE '!'")
    for column, sign, value in (
        ('"user"', "=", where.user or None),
        ("started_at", ">=", where.since),
        ("started_at", "<", where.until),
    ):
        if value is not None:
            name = f"limit{len(conditions)}"
            parameters[name] = value
            conditions.append(f"{column} {sign} :{name}")
    return conditions, parameters


def _literal(text: str) -> str:
    """Return a text as a pattern that fits only itself."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
