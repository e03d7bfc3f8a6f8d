"""Rows for models of tables: columns with the names with which they were fitted, or one array without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cargobike.core.errors import PredictionError
from cargobike.core.signatures import Datatype
from cargobike.models.flavours.answers import answers_of
from cargobike.models.flavours.rows import stack


class TablePredictor:
    """Predicts with a function of a table.

    Args:
        predict: Takes an array of rows and columns, or a DataFrame if there are names.
        names: The columns with which the model was fitted; nothing if it was fitted with an array.
    """

    floats: Datatype = "FP64"

    def __init__(self, predict: Callable[[Any], Any], names: Sequence[str] = ()) -> None:
        self._predict = predict
        self._names = list(names)

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        return answers_of(self._predict(self._table(rows)), len(rows))

    def _table(self, rows: list[Any]) -> Any:
        stacked = stack(rows)
        if isinstance(stacked, dict):
            lacking = [name for name in self._names if name not in stacked]
            if lacking:
                raise PredictionError(f"The model was fitted with fields that the rows lack: {', '.join(lacking)}.")
            return _frame({name: stacked[name] for name in self._names or stacked})
        if self._names and stacked.ndim <= 2:
            columns = stacked.reshape(len(rows), -1).T
            if len(columns) != len(self._names):
                raise PredictionError(
                    f"Rows have {len(columns)} values, and the model takes {len(self._names)}: "
                    f"{', '.join(self._names)}."
                )
            return _frame(dict(zip(self._names, columns, strict=True)))
        return stacked.reshape(-1, 1) if stacked.ndim == 1 and stacked.dtype.kind in "biuf" else stacked


def _frame(columns: dict[str, Any]) -> Any:
    import pandas as pd  # noqa: PLC0415 - only for models that were fitted with names, which came from pandas

    return pd.DataFrame(columns, copy=False)
