"""Rows that lie elsewhere: windows are decided here from times and versions alone, and summed where the rows are.

Rows are gathered by the very code that gathers those that are here, twice: once to learn which rows go together, once
with the states that came back. So windows are the same, wherever rows are summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cargobike.monitoring.states.layout import Layout
from cargobike.monitoring.states.state import State

Places = NDArray[np.int64]
_PLACE = "place"


class FarRows(Protocol):
    """Rows of a log that a model has answered, in their order, not read here."""

    @property
    def ats(self) -> NDArray[np.float64]:
        """When each request came, in seconds since 1970."""
        ...

    @property
    def versions(self) -> NDArray[np.int64]:
        """Which version answered each."""
        ...

    def sum(self, cuts: Sequence[Places]) -> list[list[State]]:
        """Return for each cut the states of its rows, which are given by their places: one state, or several to merge.

        Raises:
            StoreError: If the rows cannot be read now.
        """
        ...


def places(count: int) -> pa.Table:
    """Return a table that stands for rows: it holds where each is."""
    return pa.table({_PLACE: np.arange(count, dtype=np.int64)})


class Cutting:
    """Stands for what sums rows, and only writes down which rows are to be summed together."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.cuts: list[Places] = []

    def add(self, state: State, table: pa.Table) -> None:
        """Note the rows of a table."""
        self.cuts.append(table[_PLACE].to_numpy())
        state.rows += table.num_rows


class Merging:
    """Stands for what sums rows, and adds the states that were made elsewhere, in the same order."""

    def __init__(self, layout: Layout, states: Sequence[Sequence[State]]) -> None:
        self.layout = layout
        self._states: Iterator[Sequence[State]] = iter(states)

    def add(self, state: State, table: pa.Table) -> None:
        """Add the states of these rows to a state, in place."""
        before, merged = state.rows, state
        for part in next(self._states):
            merged = merged.merge(part)
        if merged.rows - before != table.num_rows:
            raise AssertionError(f"{merged.rows - before} rows were summed elsewhere, and {table.num_rows} are here")
        for field in fields(State):
            setattr(state, field.name, getattr(merged, field.name))


class Sums(Protocol):
    """What adds rows to states: `Summing`, or what stands for it."""

    @property
    def layout(self) -> Layout:
        """What states count."""
        ...

    def add(self, state: State, table: Any) -> None:
        """Add the rows of a table to a state, in place."""
        ...
