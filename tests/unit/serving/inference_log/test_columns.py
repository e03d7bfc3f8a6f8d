from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.signatures import Field, Signature
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.messages import Requests, to_log
from cargobike.serving.inference_log.packing import Packet, packed_rows
from cargobike.serving.inference_log.sink import Entry
from cargobike.serving.inference_log.unpacking import Layout, entries_of
from cargobike.serving.wire import framed
from support.logged_requests import NOON, RECORDS, VECTORS
from support.scripts import run_script


def entry(rows: list[Any] | None, answers: list[Any] | None, status: int = 200, request_id: str = "r") -> Entry:
    return (request_id, NOON, 0.0025, 3, status, rows, answers)


def converted(signature: Signature | None, *entries: Entry, redact: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    columns = Columns("digits", 3, signature, redact)
    batch = columns.batch(entries)
    assert columns.batch_of(packed(*entries)).equals(batch) or has_nan(batch), "packed or not, columns are the same"
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def packed(*entries: Entry) -> Requests:
    packet = Packet(3)
    for request_id, at, latency_s, _, status, rows, answers in entries:
        packet.add(request_id.encode(), at, latency_s, status, rows, answers)
    message = to_log.decode(framed(packet.message())[4:])
    assert isinstance(message, Requests)
    return message


def has_nan(batch: pa.RecordBatch) -> bool:
    return "nan" in str(batch.to_pylist())


def test_a_request_becomes_a_row_for_each_of_its_rows() -> None:
    rows = converted(VECTORS, entry([[1, 2, 3], [4, 5, 6]], [0.5, 0.25], request_id="a"), entry([[7, 8, 9]], [1.0]))
    assert [(row["request_id"], row["row"], row["input.x"], row["output.score"]) for row in rows] == [
        ("a", 0, [1, 2, 3], 0.5),
        ("a", 1, [4, 5, 6], 0.25),
        ("r", 0, [7, 8, 9], 1.0),
    ]
    assert {(row["model"], row["version"], row["status"], row["input"], row["output"]) for row in rows} == {
        ("digits", 3, 200, None, None)
    }
    assert rows[0]["latency_ms"] == 2.5
    assert rows[0]["at"].isoformat() == "2026-05-01T12:00:00+00:00"


def test_a_vector_is_one_column_of_lists_that_numpy_sees_as_a_matrix() -> None:
    batch = Columns("digits", 1, VECTORS).batch([entry([[1, 2, 3], [4, 5, 6]], [0, 0])])
    column = batch.column("input.x")
    assert column.type == pa.list_(pa.float32(), 3)
    assert column.flatten().to_numpy(zero_copy_only=True).reshape(-1, 3).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_tensor_is_flat_and_its_shape_is_told() -> None:
    image = Signature((Field("pixels", "UINT8", (2, 2)),), (Field("digit", "INT64"),))
    columns = Columns("digits", 1, image)
    batch = columns.batch([entry([[[1, 2], [3, 4]]], [7]), entry(None, None, 400), entry([[[5, 6], [7, 8]]], [9])])
    assert batch.column("input.pixels").to_pylist() == [[1, 2, 3, 4], None, [5, 6, 7, 8]]
    assert batch.schema.field("input.pixels").metadata == {b"shape": b"[2,2]"}


def test_any_length_and_texts_have_columns_too() -> None:
    signature = Signature((Field("words", "BYTES", (-1,)), Field("grid", "FP32", (-1, -1))), (Field("label", "BYTES"),))
    (row,) = converted(signature, entry([{"words": ["a", "b"], "grid": [[1], [2, 3]]}], ["yes"]))
    assert (row["input.words"], row["input.grid"], row["output.label"]) == (["a", "b"], [[1], [2, 3]], "yes")


def test_a_request_without_rows_or_answers_is_a_row_of_nulls() -> None:
    rows = converted(VECTORS, entry(None, None, 413), entry([[1, 2, 3]], None, 504), entry([], [], 200))
    assert [(row["status"], row["row"], row["input.x"], row["output.score"]) for row in rows] == [
        (413, None, None, None),
        (504, 0, [1, 2, 3], None),
        (200, None, None, None),
    ]


@pytest.mark.parametrize("wrong", [[1, 2], [1, 2, "three"], "text", {"x": 1}, [[1, 2, 3]], [1, 2, {"y": 1}]])
def test_a_row_that_does_not_fit_is_kept_as_text_and_the_others_as_columns(wrong: Any) -> None:
    rows = converted(VECTORS, entry([[1, 2, 3]], [1.0]), entry([wrong], ["no number"], 400), entry([[4, 5, 6]], [2.0]))
    assert [row["input.x"] for row in rows] == [[1, 2, 3], None, [4, 5, 6]]
    assert [row["output.score"] for row in rows] == [1.0, None, 2.0]
    assert json.loads(rows[1]["input"]) == wrong
    assert json.loads(rows[1]["output"]) == "no number"
    assert rows[0]["input"] is rows[2]["input"] is None


def test_without_a_signature_rows_and_answers_are_json() -> None:
    (row,) = converted(None, entry([{"a": [1, 2]}], [{"label": "x", "p": 0.5}]))
    assert json.loads(row["input"]) == {"a": [1, 2]}
    assert json.loads(row["output"]) == {"label": "x", "p": 0.5}


def test_redacted_fields_are_null_whatever_the_row_looks_like() -> None:
    secret = "sesame"
    rows = converted(
        RECORDS,
        entry([{"age": 3, "town": secret}], [0.5]),
        entry([{"age": "wrong", "town": secret, "more": {"town": secret, "street": "x"}}], [0.5]),
        entry([[3, secret]], [0.5]),
        redact=("town",),
    )
    assert [row["input.town"] for row in rows] == [None] * 3
    assert rows[0]["input.age"] == 3
    assert json.loads(rows[1]["input"]) == {"age": "wrong", "more": {"street": "x"}}
    assert rows[2]["input"] is None, "which of these values is the town cannot be known"
    assert secret not in str(rows)


def test_the_only_field_and_whole_sides_can_be_redacted() -> None:
    (row,) = converted(VECTORS, entry([[1, 2, 3]], [0.5]), redact=("x",))
    assert (row["input.x"], row["input"], row["output.score"]) == (None, None, 0.5)
    (row,) = converted(VECTORS, entry([["wrong"]], [0.5]), redact=("x",))
    assert (row["input.x"], row["input"], row["output.score"]) == (None, None, 0.5)
    for rows in ([[1, 2]], [{"any": "thing"}]):
        for signature in (None, VECTORS):
            (row,) = converted(signature, entry(rows, [[3]]), redact=("input",))
            assert (row["input"], row["output"]) == (None, "[3]")


def test_messages_are_redacted_as_columns_are() -> None:
    columns = Columns("digits", 1, RECORDS, ("town", "score"))
    assert columns.redacted([{"age": 1, "town": "sesame"}], [0.5]) == ([{"age": 1}], [None])
    assert columns.redacted(None, None) == (None, None)
    assert Columns("digits", 1, VECTORS, ("town",)).redacted([[1, 2, 3]], [0.5]) == ([[1, 2, 3]], [0.5])


numbers = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.integers(-(2**20), 2**20)
anything = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | numbers,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.lists(numbers, min_size=3, max_size=3) | anything, min_size=1, max_size=6))
def test_every_row_is_kept_as_columns_or_as_text(rows: list[Any]) -> None:
    kept = converted(VECTORS, entry(rows, [0.0] * len(rows)))
    for given_, row in zip(rows, kept, strict=True):
        if row["input.x"] is not None:  # a list with a null in it has a place there too
            assert np.allclose(np.array(given_, float), np.array(row["input.x"], float), rtol=1e-6, equal_nan=True)
        elif given_ is not None:
            assert json.loads(row["input"]) == given_


def test_values_that_json_has_no_word_for_are_kept() -> None:
    rows = converted(VECTORS, entry([[math.nan, math.inf, 1.0]], [math.nan]), entry([[object(), 1, 2]], ["text"]))
    assert math.isnan(rows[0]["input.x"][0])
    assert math.isinf(rows[0]["input.x"][1])
    assert "object object" in rows[1]["input"]


FLOATS = Signature((Field("a", "FP32"), Field("grid", "FP64", (2, 2))), (Field("y", "FP32"),))
finite = st.floats(width=32, allow_nan=False)


@given(st.lists(st.tuples(finite, st.lists(finite, min_size=4, max_size=4), finite), min_size=1, max_size=20))
def test_rows_of_floats_are_unpacked_without_an_object_each(values: list[Any]) -> None:
    entries = [
        entry([{"a": a, "grid": [grid[:2], grid[2:]]}], [y], request_id=f"r{number}")
        for number, (a, grid, y) in enumerate(values)
    ]
    requests = packed(*entries)
    layout = Layout.of(FLOATS.inputs)
    assert layout is not None
    elements = layout.read(requests.rows, len(values))
    assert elements is not None, "all rows have one layout"
    assert [part.tolist() for part in elements] == [[[a] for a, _, _ in values], [grid for _, grid, _ in values]]
    assert len(converted(FLOATS, *entries)) == len(values)


def test_rows_of_another_layout_are_not_taken_for_numbers() -> None:
    layout = Layout.of(VECTORS.inputs)
    assert layout is not None
    for rows in ([[1.0, 2.0]], [[1, 2, 3]], [["x" * 8] * 3], [None], [[1.0, 2.0, 3.0], [1.0, 2.0, "12345678"]]):
        assert layout.read(packed(entry(rows, None)).rows, len(rows)) is None, rows
    assert Layout.of((Field("x", "FP32", (-1,)),)) is None
    assert Layout.of((Field("x", "INT64"),)) is None
    assert Layout.of(()) is None


def test_packed_requests_come_apart_as_they_were() -> None:
    entries = [
        entry([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [0.5, 0.25], request_id="a"),
        entry(None, None, 413, request_id="b"),
        entry([{"any": "thing"}], None, 422, request_id="c"),
        entry([[1.0, 2.0, 3.0]], [None], request_id="d"),
    ]
    assert entries_of(packed(*entries)) == entries


@pytest.mark.parametrize("count", [1, 15, 16, 40, 70_000])
def test_usual_requests_are_packed_as_others_are(count: int) -> None:
    one_by_one, at_once = Packet(3), Packet(3)
    for packet in (one_by_one, at_once):
        packet.add(b"before", NOON, 0.5, 422, [{"any": "thing"}], None)
    rows = [[float(number), 0.5, -1.0] for number in range(count)]
    for number, row in enumerate(rows):
        one_by_one.add(b"r%d" % number, NOON + number, 16.0 - number, 200, [row], [number])
    ids, numbers = [b"r%d" % number for number in range(count)], list(range(count))
    latencies = [16.0 - number for number in numbers]
    at_once.add_usual(ids, [NOON + number for number in numbers], latencies, packed_rows(rows), numbers)
    assert at_once.message() == one_by_one.message()


def test_a_request_that_cannot_be_packed_leaves_the_others_whole() -> None:
    class Unspeakable:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    packet = Packet(3)
    packet.add(b"a", NOON, 0.1, 200, [[1.0]], [1.0])
    with pytest.raises(RuntimeError, match="no words"):
        packet.add(b"b", NOON, 0.1, 200, [[2.0], [Unspeakable()]], [1.0, 2.0])
    packet.add(b"c", NOON, 0.1, 200, [[3.0]], [3.0])
    assert [(one[0], one[5]) for one in entries_of(packet.message())] == [("a", [[1.0]]), ("c", [[3.0]])]


def test_columns_of_floats_do_not_load_pandas(tmp_path: Path) -> None:
    script = """
        import sys
        from cargobike.core.signatures import Field, Signature
        from cargobike.serving.inference_log.columns import Columns
        from cargobike.serving.inference_log.packing import Packet
        from cargobike.serving.inference_log.parquet import encode
        import pyarrow as pa

        packet = Packet(1)
        packet.add(b"a", 1.0, 0.1, 200, [[1.0, 2.0]], [0.5])
        columns = Columns("m", 1, Signature((Field("x", "FP32", (2,)),), (Field("y", "FP64"),)))
        assert encode(pa.Table.from_batches([columns.batch_of(packet.message())]), 0)
        print(int("pandas" in sys.modules))
    """
    assert run_script(tmp_path, script) == 0
