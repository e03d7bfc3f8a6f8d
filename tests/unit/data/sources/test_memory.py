"""Tables in memory as sources."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.data.loading.loader import Loader
from cargobike.data.sources.memory import MemorySource
from cargobike.data.sources.opening import open_source

COLUMNS = {"x": [1.0, 2.0, 3.0], "word": ["a", "b", "c"]}


@pytest.mark.parametrize(
    "given",
    [
        COLUMNS,
        {"x": np.array(COLUMNS["x"]), "word": np.array(COLUMNS["word"])},
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        pd.DataFrame(COLUMNS, index=[5, 6, 7]),
        pl.DataFrame(COLUMNS),
        pl.LazyFrame(COLUMNS),
    ],
    ids=lambda given: type(given).__name__,
)
def test_all_kinds_of_tables_have_the_same_rows(given: object) -> None:
    (batch,) = list(Loader(given))
    assert {name: array.tolist() for name, array in batch.items()} == COLUMNS


def test_large_tables_are_cut_into_groups() -> None:
    source = open_source({"x": np.zeros((5000, 1000), np.float32)})
    assert len(source.groups) > 1
    assert sum(group.rows for group in source.groups) == source.num_rows == 5000
    assert "rows 0 to" in source.groups[0].place
    few = MemorySource(pa.table({"x": list(range(10))}), group_rows=4)
    assert [few.read(group)["x"].to_pylist() for group in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_the_fingerprint_tells_tables_apart() -> None:
    prints = {
        open_source({"x": values}).fingerprint
        for values in (np.arange(9), np.arange(10), np.arange(9.0), np.arange(1, 10), np.arange(9))
    }
    assert len(prints) == 4


def test_memory_cannot_be_opened_elsewhere() -> None:
    with pytest.raises(InvalidInputError, match=r"only in the memory of this process. Write it first"):
        open_source(COLUMNS).spec()


def test_arrays_that_are_no_table_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"different numbers of rows(.|\n)*'x': 3(.|\n)*'y': 2"):
        open_source({"x": [1, 2, 3], "y": [1, 2]})
    with pytest.raises(InvalidInputError, match="'x': tensors of complex128 cannot be kept"):
        open_source({"x": np.zeros((2, 2), complex)})
    with pytest.raises(InvalidInputError, match="cannot become a table"):
        open_source({"x": [object(), 1]})
