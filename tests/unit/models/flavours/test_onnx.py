"""ONNX models whose weights lie in other files, honest ones and hostile ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cargobike.core.errors import InvalidInputError, PredictionError, StoreError
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, recognise, save

WEIGHTS = np.arange(8, dtype=np.float32).reshape(4, 2)


def product() -> Any:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["points", "weights"], ["out"])],
        "graph",
        [helper.make_tensor_value_info("points", TensorProto.FLOAT, ["rows", 4])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["rows", 2])],
        [numpy_helper.from_array(WEIGHTS, "weights")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def table() -> Any:
    """A model of a table: a column of numbers and one of whole numbers, as exporters of estimators make them."""
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["age"], ["years"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["years", "weight"], ["sum"]),
            helper.make_node("Greater", ["years", "weight"], ["older"]),
        ],
        "graph",
        [
            helper.make_tensor_value_info("age", TensorProto.INT64, ["rows", 1]),
            helper.make_tensor_value_info("weight", TensorProto.FLOAT, ["rows", 1]),
        ],
        [
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["rows", 1]),
            helper.make_tensor_value_info("older", TensorProto.BOOL, ["rows", 1]),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_weights_in_another_file_are_brought_into_one(tmp_path: Path) -> None:
    path = tmp_path / "given" / "model.onnx"
    path.parent.mkdir()
    onnx.save_model(product(), str(path), save_as_external_data=True, size_threshold=0, location="weights.bin")
    assert (path.parent / "weights.bin").exists()
    saved = save(path, tmp_path / "model")
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["model.onnx"]
    assert load(saved, tmp_path / "model")([[0, 1, 0, 0]]) == [[2.0, 3.0]]


@pytest.mark.parametrize("where", ["secret", "../secret", "{folder}/secret"])
def test_a_model_cannot_read_files_beside_it(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(WEIGHTS.tobytes())
    model = product()
    weights = model.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    entry = weights.external_data.add()
    entry.key, entry.value = "location", where.format(folder=tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(StoreError, match=r"model.onnx .* cannot be read"):
        load(Saved(flavour="onnx"), tmp_path / "model")


def test_fields_are_inputs_by_name(tmp_path: Path) -> None:
    predictor = load(save(table(), tmp_path / "model"), tmp_path / "model")
    rows = [{"age": 3, "weight": 1.5}, {"age": 1, "weight": 2.5}]
    assert predictor(rows) == [{"sum": [4.5], "older": [True]}, {"sum": [3.5], "older": [False]}]
    with pytest.raises(PredictionError, match="rows lack the field 'weight'"):
        predictor([{"age": 3}])
    with pytest.raises(PredictionError, match="takes 2 fields; give dicts with age, weight"):
        predictor([[3, 1.5]])


def test_what_is_no_onnx_model_is_refused(tmp_path: Path) -> None:
    assert recognise("model.ONNX") == "onnx"
    (tmp_path / "model.onnx").write_bytes(b"this is no model")
    with pytest.raises(InvalidInputError, match="is no ONNX model"):
        save(tmp_path / "model.onnx", tmp_path / "a")
    with pytest.raises(InvalidInputError, match="There is no file"):
        save(tmp_path / "absent.onnx", tmp_path / "b")
    with pytest.raises(InvalidInputError, match="A int was given"):
        save(3, tmp_path / "c", flavour="onnx")
