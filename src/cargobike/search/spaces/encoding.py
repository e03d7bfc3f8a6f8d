"""Parameters as rows of numbers, for optimizers that compute with whole sets of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cargobike.core.errors import SpaceError
from cargobike.core.records import Params
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.space import Searchspace

Floats: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]

_LISTED = 10_000
"""Uneven lattices of up to so many values are snapped to by looking them up."""


class Encoding:
    """Maps the parameters of a space to columns in [0, 1], NaN where a parameter does not exist.

    Attributes:
        space: Whose parameters these are.
        counts: How many values each column has, infinity for a continuous one.
        is_choice: Which columns hold values without an order.
        numbers: The other columns.
        choices: The columns of `is_choice`.
        choice_counts: How many values each of these has.
        is_conditional: Whether a row of the space may lack a column.
        is_constrained: Whether there are rows that break constraints.
    """

    def __init__(self, space: Searchspace) -> None:
        self.space = space
        parameters = list(space.parameters.values())
        self._parameters = parameters
        self.counts: Floats = np.array([p.count or np.inf for p in parameters], dtype=np.float64)
        self.is_choice: Booleans = np.array([p.type == "CATEGORICAL" for p in parameters], dtype=np.bool_)
        self.numbers = np.flatnonzero(~self.is_choice)
        self.choices = np.flatnonzero(self.is_choice)
        self.choice_counts: Floats = self.counts[self.choices]
        # Log lattices have uneven cells. One too large to list is left as it is: decoding snaps it.
        uneven = [j for j, p in enumerate(parameters) if p.is_range and p.count is not None and p.scale != "linear"]
        self._listed = [(j, _units(parameters[j])) for j in uneven if self.counts[j] <= _LISTED]
        even = np.isfinite(self.counts)
        even[uneven] = False
        self._even = np.flatnonzero(even)
        self._cells = self.counts[self._even]
        self._last_cells = self._cells - 1
        position = {name: j for j, name in enumerate(space.names)}
        self._conditions = [
            (position[p.name], position[parent], np.array([space[parent].to_unit(value) for value in wanted]))
            for p in _in_dependency_order(space)
            for parent, wanted in p.condition
        ]
        self.is_conditional = bool(self._conditions)
        self.is_constrained = bool(space.constraints)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._parameters)

    def row(self, params: Mapping[str, object]) -> Floats:
        """Return the row of one set of parameters, which must lie in the space."""
        units = [p.to_unit(params[p.name]) if p.name in params else np.nan for p in self._parameters]  # type: ignore[arg-type]
        return np.array(units, dtype=np.float64)

    def try_row(self, params: Mapping[str, object]) -> Floats | None:
        """Return the row of parameters from elsewhere, `None` if they do not lie in the space."""
        try:
            return self.row(self.space.validate(params))
        except SpaceError:
            return None

    def params(self, row: Floats) -> Params:
        """Return the parameters of a row; of one that breaks constraints, those of a place near by that keeps them."""
        return self.space.from_unit([None if math.isnan(unit) else unit for unit in row.tolist()])

    def try_params(self, row: Floats) -> Params | None:
        """Return the parameters of a row, `None` if it breaks constraints."""
        return self.space.try_unit([None if math.isnan(unit) else unit for unit in row.tolist()])

    def broken(self, rows: Floats) -> Booleans:
        """Tell which rows break constraints."""
        return np.array([self.try_params(row) is None for row in rows], dtype=np.bool_)

    def kept_first(self, rows: Floats) -> Floats:
        """Return rows in their order, but those that break constraints last."""
        if not self.is_constrained:
            return rows
        broken = self.broken(rows)
        return np.concatenate([rows[~broken], rows[broken]])

    def settle(self, rows: Floats) -> Floats:
        """Move complete rows to the nearest values there are, and blank what does not exist beside the rest."""
        rows = np.minimum(np.maximum(rows, 0.0), 1.0)
        if len(self._even):
            cells = np.minimum(np.floor(rows[:, self._even] * self._cells), self._last_cells)
            rows[:, self._even] = (cells + 0.5) / self._cells
        for column, units in self._listed:
            above = np.clip(np.searchsorted(units, rows[:, column]), 1, max(1, len(units) - 1))
            below = above - 1
            above = np.minimum(above, len(units) - 1)
            nearer = rows[:, column] - units[below] < units[above] - rows[:, column]
            rows[:, column] = np.where(nearer, units[below], units[above])
        for column, parent, wanted in self._conditions:
            holds = (rows[:, parent, None] == wanted).any(axis=1)  # NaN equals nothing, so absence is inherited
            rows[~holds, column] = np.nan
        return rows


def _units(parameter: Parameter) -> Floats:
    return np.array([parameter.to_unit(parameter.at(index)) for index in range(parameter.count or 0)])


def _in_dependency_order(space: Searchspace) -> list[Parameter]:
    waiting, ordered = dict(space.parameters), dict[str, Parameter]()
    while waiting:
        ready = [p for p in waiting.values() if all(parent in ordered for parent, _ in p.condition)]
        ordered.update((p.name, p) for p in ready)
        waiting = {name: p for name, p in waiting.items() if name not in ordered}
    return list(ordered.values())
