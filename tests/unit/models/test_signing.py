"""Signatures: what an example shows, and what is said of rows that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.signatures import Field, Signature
from cargobike.models.signing import check_rows, infer_signature

VECTORS = Signature((Field("input", "FP32", (3,)),))
RECORDS = Signature(
    (
        Field("age", "INT8"),
        Field("town", "BYTES"),
        Field("weight", "FP64", (), nullable=True),
        Field("path", "FP32", (-1, 2)),
        Field("member", "BOOL"),
    )
)
RECORD: dict[str, Any] = {"age": 3, "town": "Kista", "weight": None, "path": [[0.0, 1.0]], "member": True}


def total(rows: list[Any]) -> Sequence[Any]:
    return [float(np.sum(row)) for row in rows]


@pytest.mark.parametrize(
    ("example", "field"),
    [
        ([[0.5, 1], [2, 3.5]], Field("input", "FP64", (2,))),
        (np.zeros((2, 3), np.float32), Field("input", "FP32", (3,))),
        (torch.zeros(2, 3, dtype=torch.int32), Field("input", "INT32", (3,))),
        ([[[1, 2]], [[1, 2], [3, 4]]], Field("input", "INT64", (-1, 2))),
        ([1, 2], Field("input", "INT64")),
        ([True, False], Field("input", "BOOL")),
        ([1.5, None], Field("input", "FP64", (), nullable=True)),
        (np.array([1.5, np.nan]), Field("input", "FP64", (), nullable=True)),
    ],
)
def test_an_example_tells_type_and_shape(example: Any, field: Field) -> None:
    signature = infer_signature(lambda rows: [{"sum": 1.0, "label": "x"} for _ in rows], example)
    assert signature == Signature((field,), (Field("sum", "FP64"), Field("label", "BYTES")))


def test_columns_become_fields_and_one_column_becomes_bare_values() -> None:
    frame = pd.DataFrame({"age": np.array([3, 4], np.int16), "town": ["Kista", "Lund"]})
    signature = infer_signature(lambda rows: [row["age"] for row in rows], frame)
    assert signature.inputs == (Field("age", "INT16"), Field("town", "BYTES"))
    assert infer_signature(total, frame[["age"]]).inputs == (Field("age", "INT16"),)


def test_answers_of_different_kinds_are_not_described() -> None:
    assert infer_signature(lambda rows: ["x", 1.0], [1, 2]).outputs == ()


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ([], "holds no rows"),
        ("text", "holds no rows"),
        ([{"age": 3}], "single field 'age'.*give 3 instead of"),
        ([{"a": 1, "b": 2}, {"a": 1}], "row 1 is {'a': 1}, and not a dict with a, b"),
        ([[1, [2]]], "differ in length"),
        ([1, [2]], "nested differently deep"),
        ([1, "x"], "of the types int, str"),
        ([None], "All values of 'input' are missing"),
        ({"a": [1], "b": [1, 2]}, "'a' has 1 row, 'b' has 2 rows"),
    ],
)
def test_an_example_that_tells_nothing_is_refused(example: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        infer_signature(total, example)


def test_a_model_that_fails_on_its_example_is_told() -> None:
    with pytest.raises(PredictionError, match=r"failed on the example of 1 row: ZeroDivisionError"):
        infer_signature(lambda rows: [1 // 0 for _ in rows], [1])


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2.0, 3.0]],
        [[1, 2, 3], [1.5, True, 3]],
        np.ones((4, 3)).tolist(),
        list(np.ones((4, 3), np.float32)),
        [],
    ],
)
def test_rows_that_fit_pass(rows: list[Any]) -> None:
    check_rows(VECTORS, rows)


def test_records_that_fit_pass() -> None:
    without = {name: value for name, value in RECORD.items() if name != "weight"}
    check_rows(RECORDS, [RECORD, without, {**RECORD, "weight": float("nan"), "path": []}])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([1.0, 2.0], "row 1, field 'input': it has 2 values, and the model takes 3"),
        ([1.0, float("nan"), 2.0], "row 1, field 'input': value 1: it is nan, not a finite number"),
        ([1.0, float("inf"), 2.0], "it is inf, not a finite number"),
        ([1.0, "2", 3.0], "row 1, field 'input': value 1: it is '2', not a number"),
        ([1.0, None, 3.0], r"value 1: it is missing \(null\)"),
        (7, "it is 7, not a list of 3 values"),
        ([[1.0, 2.0, 3.0]], "it has 1 value, and the model takes 3"),
        ({"input": [1.0]}, "it is {'input': .1.0.}, not a list"),
        (None, "it is missing"),
    ],
)
def test_a_row_that_does_not_fit_is_named(row: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        check_rows(VECTORS, [[1.0, 2.0, 3.0], row])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": 300}, "row 0, field 'age': it is 300, which INT8 cannot hold"),
        ({"age": 1.5}, "it is 1.5, not a whole number"),
        ({"age": "x"}, "it is 'x', not a whole number"),
        ({"town": 3}, "field 'town': it is 3, not a text"),
        ({"member": 1}, "it is 1, not true or false"),
        ({"path": [[1.0]]}, "field 'path': value 0: it has 1 value, and the model takes 2"),
        ({"towns": "x"}, "unknown field 'towns'"),
        ({"weight": [1.0]}, "not a single value"),
    ],
)
def test_a_field_that_does_not_fit_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        check_rows(RECORDS, [{**RECORD, **change}])


def test_all_mistakes_are_listed_up_to_a_limit() -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_rows(RECORDS, [{"age": "x"}, 3])
    assert len(caught.value.mistakes) == 5
    assert any("lacks the field 'town'" in mistake for mistake in caught.value.mistakes)
    with pytest.raises(InvalidInputError) as caught:
        check_rows(VECTORS, [[]] * 1000)
    assert len(caught.value.mistakes) == 11
    assert caught.value.mistakes[-1] == "and more"
