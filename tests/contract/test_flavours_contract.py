"""Every flavour keeps what a flavour promises."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from cargobike.testing.flavours import FlavourCase, FlavourContract
from support.models import Affine, Perceptron, perceptron

RNG = np.random.default_rng(7)
POINTS = RNG.normal(size=(60, 4))
LABELS = np.where(POINTS[:, 0] + POINTS[:, 1] > 0, "yes", "no")
ROWS: list[Any] = POINTS[:7].tolist()


class TestFunction(FlavourContract):
    def case(self) -> FlavourCase:
        weights = np.arange(4.0)
        return FlavourCase(
            lambda rows: np.asarray(rows) @ weights,
            ROWS,
            (POINTS[:7] @ weights).tolist(),
            expected="python",
            runs_code=True,
        )


class TestObjectOfOwnModule(FlavourContract):
    def case(self) -> FlavourCase:
        records = [{"age": age, "town": town} for age, town in zip(range(5), "abcde", strict=True)]
        answers = [{"value": 2.0 * age + 1.0, "town": town} for age, town in zip(range(5), "abcde", strict=True)]
        return FlavourCase(Affine(2.0, 1.0), records, answers, expected="python", runs_code=True)


class TestSklearn(FlavourContract):
    def case(self) -> FlavourCase:
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(POINTS, LABELS)
        return FlavourCase(model, ROWS, model.predict(POINTS[:7]).tolist(), expected="sklearn")


@pytest.mark.slow
class TestSklearnProbabilities(FlavourContract):
    def case(self) -> FlavourCase:
        model = RandomForestClassifier(n_estimators=5, random_state=7).fit(POINTS, LABELS)
        return FlavourCase(model.predict_proba, ROWS, model.predict_proba(POINTS[:7]).tolist(), expected="sklearn")


@pytest.mark.slow
class TestSklearnWithOwnFunction(FlavourContract):
    def case(self) -> FlavourCase:
        model = make_pipeline(FunctionTransformer(lambda table: table**2), Ridge()).fit(POINTS, POINTS[:, 0])
        return FlavourCase(model, ROWS, model.predict(POINTS[:7]).tolist(), expected="sklearn", runs_code=True)


@pytest.mark.slow
class TestSklearnTable(FlavourContract):
    def case(self) -> FlavourCase:
        frame = pd.DataFrame({"age": np.arange(20.0), "town": list("abcd") * 5})
        columns = make_column_transformer((OneHotEncoder(), ["town"]), (StandardScaler(), ["age"]))
        model = make_pipeline(columns, Ridge()).fit(frame, np.arange(20.0))
        answers = model.predict(frame[:5]).tolist()
        return FlavourCase(model, frame[:5].to_dict(orient="records"), answers, expected="sklearn")


@pytest.mark.slow
class TestTorchWhole(FlavourContract):
    def case(self) -> FlavourCase:
        module = Perceptron(width=5)
        return FlavourCase(module, ROWS, answers_of(module), expected="torch", runs_code=True)


@pytest.mark.slow
class TestTorchFactory(FlavourContract):
    def case(self) -> FlavourCase:
        module = perceptron(width=5)
        factory = functools.partial(perceptron, width=5)
        return FlavourCase(module, ROWS, answers_of(module), factory, expected="torch", runs_code=True)


class TestTorchFactoryOfALibrary(FlavourContract):
    def case(self) -> FlavourCase:
        module = torch.nn.Linear(4, 3)
        factory = ("torch.nn:Linear", {"in_features": 4, "out_features": 3})
        return FlavourCase(module, ROWS, answers_of(module), factory, expected="torch")


@pytest.mark.slow
class TestTorchExport(FlavourContract):
    def case(self) -> FlavourCase:
        module = Perceptron(width=5)
        sizes = {"points": {0: torch.export.Dim("rows")}}
        program = torch.export.export(module, (torch.zeros(2, 4),), dynamic_shapes=sizes)
        return FlavourCase(program, ROWS, answers_of(module), expected="torch-export", runs_code=True)


@pytest.mark.slow
class TestTorchExportOfOneSize(FlavourContract):
    def case(self) -> FlavourCase:
        module = Perceptron(width=5)
        program = torch.export.export(module, (torch.zeros(2, 4),))
        return FlavourCase(program, ROWS, answers_of(module), expected="torch-export", runs_code=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # TensorFlow's own
class TestKeras(FlavourContract):
    def case(self) -> FlavourCase:
        import keras

        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
        answers = np.asarray(model(np.float32(POINTS[:7]))).tolist()
        return FlavourCase(model, ROWS, answers, expected="keras")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # TensorFlow's own
class TestKerasOwnLayer(FlavourContract):
    def case(self) -> FlavourCase:
        import keras

        from support.keras_layers import Scaled

        model = keras.Sequential([keras.Input((4,)), Scaled(3.0), keras.layers.Dense(2)])
        answers = np.asarray(model(np.float32(POINTS[:7]))).tolist()
        return FlavourCase(model, ROWS, answers, expected="keras", runs_code=True)


class TestOnnx(FlavourContract):
    def case(self) -> FlavourCase:
        return FlavourCase(onnx_model(), ROWS, onnx_answers(), expected="onnx")


@pytest.mark.slow
class TestOnnxOfOneSize(FlavourContract):
    def case(self) -> FlavourCase:
        return FlavourCase(onnx_model(rows=3), ROWS, onnx_answers(), expected="onnx")


@pytest.mark.slow
class TestJax(FlavourContract):
    def case(self) -> FlavourCase:
        import jax

        weights = RNG.normal(size=(4, 2)).astype(np.float32)
        function = jax.jit(lambda points: jax.nn.relu(points @ weights))
        answers = np.maximum(POINTS[:7].astype(np.float32) @ weights, 0).tolist()
        return FlavourCase(function, ROWS, answers, expected="jax")


@pytest.mark.slow
class TestJaxWithFields(FlavourContract):
    def case(self) -> FlavourCase:
        rows = [{"x": float(number), "y": [1.0, float(number)]} for number in range(5)]
        answers = [{"sum": 1.0 + 2 * row["x"], "double": 2 * row["x"]} for row in rows]  # type: ignore[operator]
        return FlavourCase(
            lambda x, y: {"sum": x + y.sum(axis=1), "double": 2 * x}, rows, answers, flavour="jax", expected="jax"
        )


@pytest.mark.slow
class TestXGBoost(FlavourContract):
    def case(self) -> FlavourCase:
        import xgboost

        model = xgboost.XGBClassifier(n_estimators=5).fit(POINTS, LABELS == "yes")
        return FlavourCase(model.predict_proba, ROWS, model.predict_proba(POINTS[:7]).tolist(), expected="xgboost")


@pytest.mark.slow
class TestLightGBM(FlavourContract):
    def case(self) -> FlavourCase:
        import lightgbm

        model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, min_child_samples=2).fit(POINTS, LABELS)
        return FlavourCase(model, ROWS, model.predict(POINTS[:7]).tolist(), expected="lightgbm")


def answers_of(module: Any) -> list[Any]:
    with torch.no_grad():
        answers: list[Any] = module(torch.tensor(POINTS[:7], dtype=torch.float32)).tolist()
    return answers


def onnx_model(rows: int | str = "rows") -> Any:
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(4, 2), "weights")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["points", "weights"], ["product"]),
            helper.make_node("Relu", ["product"], ["out"]),
        ],
        "graph",
        [helper.make_tensor_value_info("points", TensorProto.FLOAT, [rows, 4])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [rows, 2])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def onnx_answers() -> list[Any]:
    weights = np.arange(8, dtype=np.float32).reshape(4, 2)
    answers: list[Any] = np.maximum(np.float32(POINTS[:7]) @ weights, 0).tolist()
    return answers
