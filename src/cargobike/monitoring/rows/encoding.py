"""Values of a table as numbers: what states count, and what null windows are drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring.rows.columns import is_category, is_number, is_unknown, texts_of
from cargobike.monitoring.states.layout import FARTHEST, CategoryColumn, Codes, Floats, Layout, Singles

ROWS_AT_ONCE = 8192


@dataclass(slots=True)
class Encoded:
    """Some rows, a row of each array for a column.

    Attributes:
        raw: Numbers as they are; NaN where there is none.
        exact: Standardized numbers, not cut off; NaN where there is none.
        numbers: The same, cut off, and zero where there is none.
        bins: Which bin each is in; the last one counts what is missing.
        codes: Which cell of its column each category is in.
    """

    raw: Floats
    exact: Floats
    numbers: Singles
    bins: Codes
    codes: Codes


class Encoder:
    """Encodes the rows of tables that have the columns of a layout, in whatever order and among others."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._centres = np.array([column.centre for column in layout.numbers])[:, None]
        self._scales = np.array([column.scale for column in layout.numbers])[:, None]
        self._sets = [pa.array([*column.categories, *column.others], pa.string()) for column in layout.categories]

    def pieces(self, table: pa.Table, texts: list[pa.ChunkedArray]) -> Iterator[Encoded]:
        """Yield the rows of a table, some thousand at a time.

        Args:
            table: The rows.
            texts: Its columns of categories as texts, as `texts` returns them.
        """
        columns = [floats_of(table.column(column.name)) for column in self._layout.numbers]
        codes = [self._codes(place, text) for place, text in enumerate(texts)]
        for start in range(0, table.num_rows, ROWS_AT_ONCE):
            rows = min(ROWS_AT_ONCE, table.num_rows - start)
            raw = np.empty((len(columns), rows))
            for place, values in enumerate(columns):
                raw[place] = values[start : start + rows]
            cut = np.empty((len(codes), rows), np.uint8)
            for place, code in enumerate(codes):
                cut[place] = code[start : start + rows]
            yield self._piece(raw, cut)

    def texts(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """Return the columns of categories as texts."""
        return [texts_of(table.column(column.name)) for column in self._layout.categories]

    def _piece(self, raw: Floats, codes: Codes) -> Encoded:
        with np.errstate(over="ignore", invalid="ignore"):
            exact = (raw - self._centres) / self._scales
            single = exact.astype(np.float32)
        bins = np.zeros(raw.shape, np.uint8)
        for place in range(self._layout.bins - 1):  # a comparison at a time is much quicker than a search for each
            bins += single >= self._layout.edges[:, place, None]
        missing = np.isnan(single)
        if missing.any():
            bins[missing] = self._layout.bins
            single[missing] = 0
        np.clip(single, -FARTHEST, FARTHEST, out=single)
        return Encoded(raw, exact, single, bins, codes)

    def _codes(self, place: int, text: pa.ChunkedArray) -> Codes:
        column = self._layout.categories[place]
        found = pc.index_in(text, value_set=self._sets[place]).to_numpy(zero_copy_only=False).astype(np.float64)
        others, unseen, missing = len(column.categories), self._layout.kinds, self._layout.kinds + 1
        codes = np.where(np.isnan(found), unseen if column.is_complete else others, np.minimum(found, others))
        if text.null_count:
            codes[text.is_null().to_numpy()] = missing
        return codes.astype(np.uint8)


def check_columns(schema: pa.Schema, layout: Layout) -> None:
    """Refuse rows that lack a column of the reference, or have values of another kind in it.

    Raises:
        InvalidInputError: Names all columns that do not fit.
    """
    mistakes = []
    for column in layout.columns:
        places = schema.get_all_field_indices(column.name)
        if len(places) != 1:
            mistakes.append(_absent(column.name, len(places), schema.names))
            continue
        kind = schema.field(places[0]).type
        fits = is_category(kind) if isinstance(column, CategoryColumn) else is_number(kind)
        if not fits and not is_unknown(kind):
            mistakes.append(f"{column.name!r} has {kind} values, and {column.type} in the reference; cast one of them")
    if mistakes:
        raise InvalidInputError("These rows cannot be compared with the reference.", mistakes)


def _absent(name: str, times: int, names: list[str]) -> str:
    if times:
        return f"{name!r} is there {times} times; rename the others"
    from_here = ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")
    return f"{name!r} is missing; there are {from_here or 'no columns'}"


def floats_of(column: pa.ChunkedArray) -> Any:
    """Return a column as doubles, with NaN where there is none."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    if not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy()
