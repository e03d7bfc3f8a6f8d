"""Indexes of row groups as they are stored: read without unpickling, written as petastorm reads them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from cargobike.compat.petastorm.etl.rowgroup_indexers import (
    FieldNotNullIndexer,
    RowGroupIndexerBase,
    SingleFieldIndexer,
)
from cargobike.compat.petastorm.stored.known import Made, PickleError
from cargobike.compat.petastorm.stored.pickling import dict_of, float_of, name_of, object_of, set_of, text_of, whole_of
from cargobike.compat.petastorm.stored.unpickling import read_pickle
from cargobike.core.errors import InvalidInputError

_MODULE = "petastorm.etl.rowgroup_indexers"


def read_indexes(data: bytes | None) -> dict[str, RowGroupIndexerBase]:
    """Return the indexes of a data set by name; none if nothing is stored.

    Raises:
        UntrustedError: If the pickle names anything that no index needs.
        PickleError: If it is broken.
    """
    if data is None:
        return {}
    found = read_pickle(data)
    if not isinstance(found, dict):
        raise PickleError("It holds no indexes.")
    return {str(name): _index(made) for name, made in found.items()}


def _index(made: Any) -> RowGroupIndexerBase:
    if not isinstance(made, Made):
        raise PickleError("It holds something else than indexes.")
    name, column, found = (made.state.get(key) for key in ("_index_name", "_column_name", "_index_data"))
    if not isinstance(name, str) or not isinstance(column, str):
        raise PickleError("It holds an index without a name or without a field.")
    if made.kind == "FieldNotNullIndexer" and isinstance(found, set) and _are_groups(found):
        not_null = FieldNotNullIndexer(name, column)
        not_null._index_data = found
        return not_null
    if made.kind == "SingleFieldIndexer" and isinstance(found, dict) and all(map(_are_groups, found.values())):
        single = SingleFieldIndexer(name, column)
        single._index_data = defaultdict(set, found)
        return single
    raise PickleError("It holds indexes of an unknown kind.")


def _are_groups(found: Any) -> bool:
    return isinstance(found, set) and all(isinstance(group, int) for group in found)


def write_indexes(indexes: Mapping[str, RowGroupIndexerBase]) -> bytes:
    """Return the pickle in which petastorm finds indexes."""
    return b"\x80\x02" + dict_of({name: _pickled(index) for name, index in indexes.items()}) + b"."


def _pickled(index: RowGroupIndexerBase) -> bytes:
    if isinstance(index, FieldNotNullIndexer):
        found = set_of(index._index_data)
    elif isinstance(index, SingleFieldIndexer):
        pairs = b"".join(_value(value) + set_of(groups) for value, groups in index._index_data.items())
        factory = b"(" + name_of("__builtin__", "set") + b"tR"
        found = name_of("collections", "defaultdict") + factory + b"(" + pairs + b"u"
    else:
        raise InvalidInputError(f"An index of your own, {type(index).__name__}, cannot be stored.")
    state = {
        "_index_name": text_of(index.index_name),
        "_column_name": text_of(index.column_names[0]),
        "_index_data": found,
    }
    return object_of(_MODULE, type(index).__name__, dict_of(state))


def _value(value: Any) -> bytes:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int):
        return whole_of(plain)
    if isinstance(plain, float):
        return float_of(plain)
    return text_of(str(plain))
