"""What a look-up gives: values by name, and for those that are absent, why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np

from cargobike.core.registering.lazy import load

Why = Literal["present", "null", "missing", "expired"]
PRESENT: Final = "present"
"""There is a value."""
NULL: Final = "null"
"""There is a row for the key, and this value in it is null."""
MISSING: Final = "missing"
"""There is no row for the key."""
EXPIRED: Final = "expired"
"""There is a row for the key, and it is older than the group's time to live."""


class Vector(dict[str, Any]):
    """Values of features by name, in the order of the view; absent ones are `None`, and `states` says why."""

    __slots__ = ("_absent",)

    def __init__(self, values: Any = (), absent: dict[str, Why] | None = None) -> None:
        super().__init__(values)
        self._absent = absent

    @property
    def states(self) -> dict[str, Why]:
        """For each feature whether it is `present`, `null`, `missing` or `expired`."""
        absent = self._absent or {}
        return {name: absent.get(name, PRESENT if value is not None else NULL) for name, value in self.items()}

    def to_numpy(self) -> np.ndarray:
        """Return the values as an array of numbers, absent ones as NaN."""
        return np.array([np.nan if value is None else value for value in self.values()], dtype=np.float64)


class Vectors(Sequence[Vector]):
    """Values for several keys, in their order; a column for each feature.

    Args:
        columns: The values of each feature; where one is absent, anything.
        absent: Why values are absent, by feature and number of the row.
        size: How many rows there are.
    """

    def __init__(self, columns: dict[str, np.ndarray], absent: dict[str, dict[int, Why]], size: int) -> None:
        self._columns = columns
        self._absent = absent
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(self._size))]
        number = range(self._size)[place]
        absent = {name: rows[number] for name, rows in self._absent.items() if number in rows}
        values = {name: None if name in absent else _plain(each[number]) for name, each in self._columns.items()}
        return Vector(values, absent)

    def __iter__(self) -> Iterator[Vector]:
        return (self[number] for number in range(self._size))

    def __repr__(self) -> str:
        return f"Vectors({self._size} rows: {', '.join(self._columns)})"

    @property
    def columns(self) -> dict[str, np.ma.MaskedArray[Any, Any]]:
        """The values of each feature, absent ones masked."""
        return {name: self._masked(name) for name in self._columns}

    def to_numpy(self) -> np.ndarray:
        """Return the values as a matrix of numbers, absent ones as NaN."""
        columns = [np.ma.filled(column.astype(np.float64), np.nan) for column in self.columns.values()]
        return np.stack(columns, axis=1) if columns else np.empty((self._size, 0))

    def to_pandas(self) -> Any:
        """Return the values as a pandas DataFrame."""
        return load("pandas:DataFrame")([dict(vector) for vector in self], columns=list(self._columns))

    def _masked(self, name: str) -> np.ma.MaskedArray[Any, Any]:
        mask = np.zeros(self._size, np.bool_)
        mask[list(self._absent.get(name, ()))] = True
        values = self._columns[name]
        if values.dtype == object:
            values = np.where(mask, 0, values)
        return np.ma.MaskedArray(values, mask=mask)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
