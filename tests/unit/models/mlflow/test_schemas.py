"""Signatures and examples in MLflow's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cargobike.core.signatures import Field, Signature
from cargobike.models.mlflow.schemas import example_from_mlflow, example_to_mlflow, from_mlflow, to_mlflow


@pytest.mark.parametrize(
    "signature",
    [
        Signature((Field("input", "FP32", (28, 28)),), (Field("output", "INT64"),)),
        Signature((Field("age", "INT64"), Field("town", "BYTES", (), nullable=True)), (Field("output", "FP64"),)),
        Signature((Field("image", "UINT8", (-1, 3)), Field("weight", "FP32"))),
        Signature((Field("input", "BYTES"),)),
    ],
)
def test_signatures_come_back(signature: Signature) -> None:
    assert from_mlflow(to_mlflow(signature)) == signature


@pytest.mark.parametrize(
    ("inputs", "fields"),
    [
        ('[{"type": "double", "name": "a"}]', (Field("a", "FP64"),)),
        ('[{"type": "array", "items": {"type": "long"}, "name": "a"}]', (Field("a", "INT64", (-1,)),)),
        ('[{"type": "tensor", "tensor-spec": {"dtype": "str", "shape": [-1]}}]', (Field("input", "BYTES"),)),
    ],
)
def test_what_mlflow_writes_is_read(inputs: str, fields: tuple[Field, ...]) -> None:
    assert from_mlflow({"inputs": inputs}) == Signature(fields)


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        "text",
        {"inputs": "no json"},
        {"inputs": "[]"},
        {"inputs": '{"a": 1}'},
        {"inputs": '[{"type": "object", "properties": {}}]'},
        {"inputs": '[{"type": "tensor", "tensor-spec": {"dtype": "complex64", "shape": [-1]}}]'},
        {"inputs": '[{"type": "tensor", "tensor-spec": {"dtype": "int8", "shape": [-1, "x"]}}]'},
        {"inputs": '[{"type": "long", "name": "a"}, {"type": "long", "name": "a"}]'},
        {"inputs": 3},
        {"inputs": "[3]"},
    ],
)
def test_what_rows_cannot_have_is_no_signature(document: Any) -> None:
    assert from_mlflow(document) is None


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [3.0, 4.0]], [1, 2], [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]])
def test_examples_come_back(rows: list[Any]) -> None:
    about, content = example_to_mlflow(rows)
    assert example_from_mlflow(about, json.loads(content)) == rows


def test_examples_that_older_versions_wrote_are_read() -> None:
    assert example_from_mlflow({"type": "ndarray", "format": "tf-serving"}, {"inputs": [[1.0]]}) == [[1.0]]
    assert example_from_mlflow({"type": "dataframe"}, {"columns": ["a"], "data": [[1], [2]]}) == [1, 2]
    assert example_from_mlflow({"type": "dataframe"}, {"data": [[1, 2]]}) == [[1, 2]]
    assert example_from_mlflow(None, {"a": 1}) is None
