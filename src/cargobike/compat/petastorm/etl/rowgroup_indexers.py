"""Indexes of row groups: which values are in which of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from cargobike.core.errors import InvalidInputError


class RowGroupIndexerBase(ABC):
    """An index, which is built from the rows of one row group after the other."""

    def __init__(self, index_name: str, index_field: str) -> None:
        self._index_name = index_name
        self._column_name = index_field

    @property
    def index_name(self) -> str:
        """What it is called."""
        return self._index_name

    @property
    def column_names(self) -> list[str]:
        """The fields that it is about."""
        return [self._column_name]

    @property
    @abstractmethod
    def indexed_values(self) -> list[Any]:
        """What can be looked up."""

    @abstractmethod
    def get_row_group_indexes(self, value_key: Any = None) -> set[int]:
        """Return the positions of the row groups that have a value."""

    @abstractmethod
    def build_index(self, decoded_rows: Sequence[Mapping[str, Any]], piece_index: int) -> Any:
        """Enter the rows of the row group at a position."""

    def __add__(self, other: Any) -> Self:
        if type(other) is not type(self) or other.column_names != self.column_names:
            raise InvalidInputError("Only indexes of the same kind and the same field can be put together.")
        self._take_in(other)
        return self

    @abstractmethod
    def _take_in(self, other: Any) -> None: ...


class SingleFieldIndexer(RowGroupIndexerBase):
    """Which values of a field are in which row groups; of a field of arrays, which values are in one of them."""

    def __init__(self, index_name: str, index_field: str) -> None:
        super().__init__(index_name, index_field)
        self._index_data: defaultdict[Any, set[int]] = defaultdict(set)

    @property
    def indexed_values(self) -> list[Any]:
        """All values."""
        return list(self._index_data)

    def get_row_group_indexes(self, value_key: Any = None) -> set[int]:
        """Return the row groups that have a value; none if no row group has it."""
        return self._index_data.get(value_key, set())

    def build_index(self, decoded_rows: Sequence[Mapping[str, Any]], piece_index: int) -> Any:
        """Enter the values of a row group."""
        for row in decoded_rows:
            value = row[self._column_name]
            for each in value.reshape(-1) if isinstance(value, np.ndarray) else [value]:
                if each is not None:
                    self._index_data[each.item() if isinstance(each, np.generic) else each].add(piece_index)
        return self._index_data

    def _take_in(self, other: Any) -> None:
        for value, groups in other._index_data.items():
            self._index_data[value].update(groups)


class FieldNotNullIndexer(RowGroupIndexerBase):
    """Which row groups have a row whose field is not missing."""

    def __init__(self, index_name: str, index_field: str) -> None:
        super().__init__(index_name, index_field)
        self._index_data: set[int] = set()

    @property
    def indexed_values(self) -> list[Any]:
        """What it says of a row group."""
        return ["Field is Not Null"]

    def get_row_group_indexes(self, value_key: Any = None) -> set[int]:
        """Return these row groups."""
        return self._index_data

    def build_index(self, decoded_rows: Sequence[Mapping[str, Any]], piece_index: int) -> Any:
        """Enter a row group."""
        if any(row[self._column_name] is not None for row in decoded_rows):
            self._index_data.add(piece_index)
        return self._index_data

    def _take_in(self, other: Any) -> None:
        self._index_data.update(other._index_data)
