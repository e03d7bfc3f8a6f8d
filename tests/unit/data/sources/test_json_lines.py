from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.json_lines import open_json_lines
from cargobike.data.sources.opening import open_again, open_source
from cargobike.data.sources.source import Source

ROW = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**63), 2**63 - 1),
        "x": st.floats(allow_nan=False, allow_infinity=False),
        "s": st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(lambda text: f"_{text}"),
        "l": st.lists(st.integers(0, 9), max_size=3),
        "o": st.fixed_dictionaries({"b": st.booleans()}),
    }
)
TYPES = {
    "i": pa.int64(),
    "x": pa.float64(),
    "s": pa.string(),
    "l": pa.list_(pa.int64()),
    "o": pa.struct([("b", pa.bool_())]),
}


def rows_of(source: Source) -> list[dict[str, Any]]:
    return [row for group in range(len(source.groups)) for row in source.read(group).to_pylist()]


def write(path: Path, *rows: object) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@given(st.lists(ROW, min_size=1, max_size=12), st.integers(1, 300))
def test_what_python_writes_is_read(tmp_path_factory: Any, rows: list[dict[str, Any]], group_bytes: int) -> None:
    path = write(tmp_path_factory.mktemp("json") / "a.jsonl", *rows)
    source = open_json_lines(path, schema=TYPES, group_bytes=group_bytes)
    assert rows_of(source) == rows
    assert rows_of(open_again(source.spec())) == rows


def test_columns_are_inferred_from_all_files(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", {"a": 1, "b": None}, {"a": 2, "b": None})
    write(tmp_path / "b.jsonl", {"a": 2.5, "c": "x"})
    source = open_source(tmp_path)
    assert {field.name: field.type for field in source.schema} == {
        "a": pa.float64(),
        "b": pa.string(),
        "c": pa.string(),
    }
    assert rows_of(source)[2] == {"a": 2.5, "b": None, "c": "x"}
    assert source.read(1, ["c", "a"]).to_pylist() == [{"c": "x", "a": 2.5}]


def test_wrong_lines_are_named(tmp_path: Path) -> None:
    good = [{"a": number} for number in range(150_000)]
    with pytest.raises(InvalidInputError, match=r"a\.jsonl, line 2: "):
        open_json_lines(write(tmp_path / "a.jsonl", {"a": 1}, "{broken", {"a": 2}))
    for wrong, why in (
        ('{"a": "x"}', "number to string"),
        ('{"a": 1, "z": 2}', "unexpected field"),
        ("[1]", "it is no object"),
        ("null", "it is no object"),
        ('{"a": 1} null', "it is no object"),
    ):
        source = open_json_lines(write(tmp_path / "b.jsonl", *good, wrong, {"a": 3}), group_bytes=1 << 20)
        with pytest.raises(InvalidInputError, match=rf"b\.jsonl, line 150001: .*{why}(.|\n)*on_error"):
            source.read(len(source.groups) - 1)


def test_two_objects_in_a_line_and_lines_of_blanks_are_named(tmp_path: Path) -> None:
    source = open_json_lines(write(tmp_path / "a.jsonl", {"a": 1}, '{"a": 2} {"a": 3}'))
    with pytest.raises(InvalidInputError, match=r"a\.jsonl, line 2: this is not one record but 2"):
        source.read(0)
    source = open_json_lines(write(tmp_path / "b.jsonl", {"a": 1}, "   ", {"a": 2}))
    with pytest.raises(InvalidInputError, match=r"b\.jsonl, line 2: "):
        source.read(0)


def test_wrong_lines_are_left_out_and_counted_if_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"a": 1}, "{broken", {"a": "x"}, {"a": 4}, "", {"a": 5, "b": 1})
    source = open_json_lines(path, schema={"a": "int64"}, on_error="skip")
    assert rows_of(source) == [{"a": 1, "b": None}, {"a": 4, "b": None}, {"a": 5, "b": 1}]
    assert [skip.place for skip in source.skips.first] == [f"{path}, line 2", f"{path}, line 3"]
    assert source.skips.count == 2


def test_columns_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"a": 1}, {"a": "x"})
    with pytest.raises(InvalidInputError, match=r"a\.jsonl: (.|\n)*schema=\{'column': 'string'\}"):
        open_json_lines(path)


def test_what_is_nested_endlessly_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(InvalidInputError, match=r"a\.jsonl, line 1: it is nested more than 64 deep"):
        open_json_lines(path)
    flat = write(tmp_path / "b.jsonl", {"a": [[0]] * 100, "s": "[" * 100})
    assert rows_of(open_json_lines(flat))[0]["s"] == "[" * 100
