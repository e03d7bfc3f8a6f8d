"""Bytes as files of Arrow's."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cargobike
from cargobike.store.files.in_memory import in_memory


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000])
def test_it_holds_a_copy_that_does_not_belong_to_python(data: bytes) -> None:
    references = sys.getrefcount(data)
    file = in_memory(data)
    assert sys.getrefcount(data) == references
    assert file.read() == data


def test_tables_are_read_from_it() -> None:
    table = pa.table({"x": list(range(1000))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    assert pq.read_table(in_memory(sink.getvalue().to_pybytes())) == table


def test_all_of_ours_is_read_that_way() -> None:
    sources = Path(cargobike.__file__).parent
    users = {str(path.relative_to(sources)) for path in sources.rglob("*.py") if "pa.BufferReader(" in path.read_text()}
    assert users == {"store/files/in_memory.py"}
