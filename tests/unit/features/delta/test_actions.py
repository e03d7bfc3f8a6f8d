"""Delta logs as strangers may have written them: understood, or refused by name; never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import StoreError
from cargobike.features.delta.actions import Add, MetaData, Remove, decode_actions, encode_actions
from cargobike.features.delta.checkpoints import newest_checkpoint, read_checkpoint, write_checkpoint
from cargobike.features.delta.schemas import encode_schema, kept_as, type_of
from cargobike.store.files.storages import open_storage

_PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
_FIELDS = st.sampled_from(
    ["path", "size", "modificationTime", "stats", "partitionValues", "minReaderVersion", "timestamp"]
)
_ACTIONS = st.dictionaries(
    st.sampled_from(["add", "remove", "protocol", "metaData", "commitInfo", "txn"]),
    st.one_of(_PLAIN, st.dictionaries(_FIELDS, _PLAIN, max_size=5)),
    max_size=2,
)


def understood(data: bytes) -> list[Any]:
    """Return the actions, or none if they were refused with a word about where they lie."""
    try:
        return list(decode_actions(data, "somewhere"))
    except StoreError as error:
        if "somewhere" not in str(error):
            raise
        return []


@given(st.lists(_ACTIONS, max_size=3))
def test_any_json_is_understood_or_refused(lines: list[dict[str, Any]]) -> None:
    for action in understood("\n".join(json.dumps(line) for line in lines).encode(errors="replace")):
        if isinstance(action, Add):
            assert isinstance(action.statistics.num_records, int)
        if isinstance(action, Add | Remove):
            assert ".." not in action.path.split("/")
            assert not action.path.startswith("/")


@given(st.binary(max_size=60))
def test_any_bytes_are_understood_or_refused(data: bytes) -> None:
    understood(data)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    add = Add(path="a b%20/ö.parquet", size=3, modification_time=7, stats='{"numRecords":5}')
    meta = MetaData(id="1", name="x", schema_string='{"fields":[]}', configuration={"cargobike.oldest": "3"})
    assert decode_actions(encode_actions([meta, add]), "here") == [meta, add]
    storage = open_storage(tmp_path)
    write_checkpoint(storage, "log", 25, [add], meta)
    assert newest_checkpoint(storage, "log") == 25
    assert read_checkpoint(storage, "log", 25) == ([add], meta)
    assert read_checkpoint(storage, "log", 50) is None
    for damage in (b"", b"PAR1", b"PAR1" * 9):
        storage.write(f"log/{25:020d}.checkpoint.parquet", damage)
        with pytest.raises(StoreError, match="is no checkpoint of a Delta table"):
            read_checkpoint(storage, "log", 25)


TYPES = "int8|int64|float|double|bool|string|date32[day]|decimal128(10, 2)|list<item: float>"


@pytest.mark.parametrize("name", TYPES.split("|"))
def test_types_keep_their_names(name: str) -> None:
    kind = type_of(name)
    assert str(kind) == name
    assert kept_as(kind) == kind
    assert '"name":"x"' in encode_schema(pa.schema([("x", kind)]))


def test_types_that_are_not_known_have_no_name() -> None:
    assert [type_of(name) for name in ("complex", "list<list<int8>>", "decimal128(99, 2)", "")] == [None] * 4
