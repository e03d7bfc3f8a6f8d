"""Rows into states."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.monitoring.rows.encoding import Encoded, Encoder, check_columns
from cargobike.monitoring.states.distinct import hash_of_text, hashes_of_numbers, hashes_of_texts, take_in
from cargobike.monitoring.states.fourier import Fourier
from cargobike.monitoring.states.layout import Layout
from cargobike.monitoring.states.state import State, merge_unseen


class Summing:
    """Makes states of rows: one for each table, to be merged with others, or one into which tables are added."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.encoder = Encoder(layout)
        self.fourier = Fourier(layout)

    def state_of(self, table: pa.Table) -> State:
        """Return the state of the rows of a table.

        Raises:
            InvalidInputError: If it lacks columns, or has values of another kind in them.
        """
        state = State.empty(self.layout)
        self.add(state, table)
        return state

    def add(self, state: State, table: pa.Table) -> None:
        """Add the rows of a table to a state, in place."""
        check_columns(table.schema, self.layout)
        texts = self.encoder.texts(table)
        for piece in self.encoder.pieces(table, texts):
            self._add_numbers(state, piece)
            self._add_cells(state, piece)
            state.fourier += self.fourier.of(piece.numbers, piece.codes).sum(1, dtype=np.float64)
        for place, text in enumerate(texts):
            self._add_texts(state, place, text)
        state.rows += table.num_rows

    def _add_numbers(self, state: State, piece: Encoded) -> None:
        exact = piece.exact
        if not len(exact):
            return
        is_finite = np.isfinite(exact)
        if is_finite.all():
            low, high = exact, exact
        else:
            state.infinite += np.isinf(exact).sum(1)
            low, high = np.where(is_finite, exact, np.inf), np.where(is_finite, exact, -np.inf)
            exact = np.where(is_finite, exact, 0.0)
        state.total += exact.sum(1)
        state.squares += np.einsum("ij,ij->i", exact, exact)
        np.minimum(state.lowest, low.min(1), out=state.lowest)
        np.maximum(state.highest, high.max(1), out=state.highest)
        hashes = hashes_of_numbers(piece.raw)
        for place, values in enumerate(piece.raw):
            is_there = ~np.isnan(values)
            take_in(state.hashes[place], hashes[place] if is_there.all() else hashes[place][is_there])
        state.cut_squares += np.einsum("ij,ij->i", piece.numbers, piece.numbers)
        if state.products.size:
            state.products += piece.numbers @ piece.numbers.T

    def _add_cells(self, state: State, piece: Encoded) -> None:
        cells = state.bins.shape[1]
        flat = (piece.bins + np.arange(0, state.bins.size, cells)[:, None]).ravel()
        state.bins += np.bincount(flat, minlength=state.bins.size).reshape(state.bins.shape)
        sums = np.bincount(flat, piece.numbers.ravel(), minlength=state.bins.size).reshape(state.bins.shape)
        state.sums += sums[:, :-1]
        cells = state.kinds.shape[1]
        flat = (piece.codes + np.arange(0, state.kinds.size, cells)[:, None]).ravel()
        state.kinds += np.bincount(flat, minlength=state.kinds.size).reshape(state.kinds.shape)

    def _add_texts(self, state: State, place: int, text: pa.ChunkedArray) -> None:
        column = self.layout.categories[place]
        counted = pc.value_counts(text.drop_null())
        names = counted.field("values").to_pylist()
        take_in(state.hashes[len(self.layout.numbers) + place], hashes_of_texts(names))
        if not column.is_complete or not state.kinds[place, -2]:
            return
        known = {*column.categories, *column.others}
        counts = counted.field("counts").to_pylist()
        unseen = {name: (hash_of_text(name), count) for name, count in zip(names, counts, strict=True)}
        unseen = {name: pair for name, pair in unseen.items() if name not in known}
        state.unseen[place] = merge_unseen(state.unseen[place], unseen)
