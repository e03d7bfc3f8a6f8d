"""Models and deployments by the names of Hopsworks, without processes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from cargobike import models, project
from cargobike.compat import hopsworks, hsml
from cargobike.compat.hsml.model_schema import ModelSchema
from cargobike.compat.hsml.predictors import Files, Script, instances_of
from cargobike.compat.hsml.schema import Schema
from cargobike.errors import DeploymentError, InvalidInputError, NotFoundError, PredictionError, UntrustedError

SCRIPT = """
import os

class Predict:
    def __init__(self):
        self.name = os.environ["MODEL_NAME"]
        with open(os.environ["MODEL_FILES_PATH"] + "/factor.txt") as file:
            self.factor = float(file.read())

    def predict(self, inputs):
        return [self.factor * row[0] for row in inputs]

    def classify(self, inputs):
        return {"name": self.name}
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("MODEL_FILES_PATH", "ARTIFACT_FILES_PATH", "MODEL_NAME", "MODEL_VERSION"):
        monkeypatch.setenv(name, "")
    project.use(tmp_path / "Football")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "factor.txt").write_text("3")
    return hopsworks.login().get_model_registry()


def test_versions_are_counted_and_the_best_is_found(registry: Any, tmp_path: Path) -> None:
    for accuracy in (0.5, 0.9, 0.7):
        model = registry.python.create_model("My Model", metrics={"accuracy": accuracy}, input_example=[1, 2])
        model.save(str(tmp_path / "files"))
    assert model.version == 3
    assert registry.get_best_model("My Model", "accuracy", "max").version == 2
    assert registry.get_best_model("My Model", "accuracy", "min").training_metrics == {"accuracy": 0.5}
    assert registry.get_best_model("other", "accuracy", "max") is None
    again = registry.get_model("My Model", version=3)
    assert (again.input_example, again.framework) == ([1, 2], "PYTHON")
    assert Path(again.download(), "factor.txt").read_text() == "3"
    assert again.model_path.endswith("/Models/My Model")
    again.delete()
    with pytest.raises(NotFoundError, match="has no version 3; it has 1, 2"):
        registry.get_model("My Model", 3)


def test_a_number_that_was_given_is_found_again(registry: Any, tmp_path: Path) -> None:
    registry.torch.create_model("net", version=7).save(tmp_path / "files")
    assert registry.get_model("net", 7).kept.reference == "net:1"
    following = registry.torch.create_model("net").save(tmp_path / "files")
    assert (following.version, following.kept.reference) == (8, "net:2")
    with pytest.raises(InvalidInputError, match="has a version 7 already"):
        registry.torch.create_model("net", version=7).save(tmp_path / "files")
    assert [model.version for model in registry.get_models("net")] == [7, 8]


def test_schemas_become_signatures(registry: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1], "town": ["Lund"]})
    schema = ModelSchema(Schema(frame), Schema(np.zeros((1, 3), dtype=np.float32)))
    kept = registry.python.create_model("m", model_schema=schema).save(tmp_path / "files").kept
    assert [(one.name, one.datatype) for one in kept.signature.inputs] == [("age", "INT64"), ("town", "BYTES")]
    assert kept.signature.outputs[0].shape == (3,)


def test_a_script_answers_a_request_as_a_whole(registry: Any, tmp_path: Path) -> None:
    kept = registry.python.create_model("m").save(tmp_path / "files").kept
    script = pickle.loads(pickle.dumps(Script(SCRIPT, "predict.py", kept.reference, 1)))
    assert script([{"inputs": [[1.0], [2.0]]}, [5.0]]) == [[3.0, 6.0], 15.0]
    assert script([{"inputs": [[1.0]], "verb": "classify"}]) == [{"name": "m"}]
    with pytest.raises(PredictionError, match="has no method regress"):
        script([{"inputs": [[1.0]], "verb": "regress"}])
    with pytest.raises(InvalidInputError, match=r"other\.py has no class Predict"):
        Script("x = 1", "other.py")


def test_estimators_are_served_without_a_script(registry: Any, tmp_path: Path) -> None:
    fitted = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
    (tmp_path / "line.pkl").write_bytes(pickle.dumps(fitted))
    kept = registry.sklearn.create_model("line").save(tmp_path / "line.pkl").kept
    served = pickle.loads(pickle.dumps(Files(kept.reference)))
    np.testing.assert_allclose(served([{"inputs": [[2.0], [3.0]]}])[0], [5.0, 7.0])
    other = registry.python.create_model("m").save(tmp_path / "files")
    with pytest.raises(InvalidInputError, match=r"factor\.txt, of which none says how it predicts"):
        other.deploy("nothing")


def test_pickles_from_elsewhere_are_not_loaded(registry: Any, tmp_path: Path) -> None:
    (tmp_path / "line.pkl").write_bytes(pickle.dumps(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])))
    registry.sklearn.create_model("line").save(tmp_path / "line.pkl")
    models.export_to("line", tmp_path / "line.tar.gz")
    models.import_from(tmp_path / "line.tar.gz", "borrowed")
    with pytest.raises(UntrustedError, match="loading its pickle runs code"):
        registry.get_model("borrowed", 1).deploy("borrowed")


def test_a_flat_list_is_one_instance() -> None:
    assert instances_of(None, [1, 2]) == [[1, 2]]
    assert instances_of(None, [[1, 2]]) == [[1, 2]]
    assert instances_of(None, {"a": 1}) == [{"a": 1}]
    assert instances_of({"instances": [1]}, None) == [1]
    with pytest.raises(InvalidInputError, match="Give either data"):
        instances_of(None, None)
    with pytest.raises(InvalidInputError, match="is needed"):
        instances_of({"rows": []}, None)


def test_a_deployment_is_defined_before_it_is_started(registry: Any, tmp_path: Path) -> None:
    (tmp_path / "predict.py").write_text(SCRIPT)
    model = registry.python.create_model("m").save(tmp_path / "files")
    deployment = model.deploy(script_file=str(tmp_path / "predict.py"))
    serving = hsml.connection().get_model_serving()
    assert serving.get_deployment("m").id == deployment.id == 1
    assert (deployment.is_running(), deployment.is_stopped(), deployment.get_state().status) == (False, True, "CREATED")
    assert models.get("m-predictor").sources[0].name == "m"
    with pytest.raises(DeploymentError, match="m is not being served"):
        deployment.predict(inputs=[1])
    with pytest.raises(InvalidInputError, match="belongs into class Predict"):
        model.deploy(transformer=object())
    deployment.delete()
    assert serving.get_deployment("m") is None
    assert serving.get_deployments() == []
