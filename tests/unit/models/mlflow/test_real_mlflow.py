"""Folders that are exported run in the real MLflow, and folders of the real MLflow are imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from cargobike.core.errors import UntrustedError
from cargobike.core.signatures import Signature
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, save
from cargobike.models.mlflow.exporting import export_mlflow
from cargobike.models.mlflow.importing import Imported, import_mlflow
from cargobike.models.signing import infer_signature
from support.models import Affine, Perceptron, perceptron
from support.scripts import environment

pytestmark = pytest.mark.slow

POINTS = np.random.default_rng(7).normal(size=(40, 4))
ROWS: list[Any] = POINTS[:3].tolist()
RECORDS = [{"age": 3, "town": "Kista"}, {"age": 4, "town": "Lund"}]

RUN = """
import json, sys, warnings
warnings.simplefilter("ignore")
import mlflow, numpy as np, pandas as pd
answers = {}
for folder in sys.argv[1:]:
    model = mlflow.pyfunc.load_model(folder)
    example = model.metadata.load_input_example(folder)
    schema = model.metadata.get_input_schema()
    kind = schema.input_types()[0] if schema.is_tensor_spec() else None
    given = example if kind is None else np.asarray(example, kind)
    answer = model.predict(given)
    native = [name for name in model.metadata.flavors if name in ("sklearn", "onnx", "pytorch", "keras")]
    for name in native:
        loaded = getattr(mlflow, name).load_model(folder)
        assert loaded is not None
    answers[folder] = [answer.tolist() if hasattr(answer, "tolist") else answer, native]
print(json.dumps(answers))
"""

MAKE = """
import sys, warnings
warnings.simplefilter("ignore")
import mlflow, numpy as np, torch, pandas as pd
from mlflow.models import infer_signature
from sklearn.linear_model import LogisticRegression
root = sys.argv[1]
points = np.random.default_rng(7).normal(size=(40, 4))
labels = points[:, 0] > 0
model = LogisticRegression().fit(points, labels)
signature = infer_signature(points, model.predict(points))
needs = ["scikit-learn"]
mlflow.sklearn.save_model(model, f"{root}/skops", signature=signature, input_example=points[:2], pip_requirements=needs)
mlflow.sklearn.save_model(
    model, f"{root}/pickle", serialization_format="cloudpickle", pyfunc_predict_fn="predict_proba",
    pip_requirements=needs,
)
module = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
torch.save(module, f"{root}/module.pth")
mlflow.pytorch.save_model(module, f"{root}/pytorch", pip_requirements=["torch"], serialization_format="pickle")

class Sum(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input["a"] + model_input["b"]

frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
mlflow.pyfunc.save_model(
    f"{root}/function", python_model=Sum(), signature=infer_signature(frame, frame["a"]), pip_requirements=["pandas"]
)
"""


def run_mlflow(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**environment(), "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_TRACKING_URI": "file:///nonexistent"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported(
    folder: Path, model: Any, rows: list[Any], factory: Any = None
) -> tuple[Path, Saved, Signature, list[Any]]:
    files = folder / "files"
    saved = save(model, files, factory=factory, example=rows)
    predictor = load(saved, files)
    signature = infer_signature(predictor, rows)
    export_mlflow(folder / "exported", files=files, saved=saved, title="digits:3", signature=signature, example=rows)
    return folder / "exported", saved, signature, list(predictor(rows))


def test_what_is_exported_runs_in_mlflow_and_comes_back(tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    labels = np.where(POINTS[:, 0] > 0, "yes", "no")
    module = Perceptron(width=5)
    program = torch.export.export(
        module, (torch.zeros(2, 4),), dynamic_shapes={"points": {0: torch.export.Dim("rows")}}
    )
    folders = {
        "sklearn": exported(tmp_path / "sklearn", LogisticRegression().fit(POINTS, labels), ROWS),
        "tree": exported(tmp_path / "tree", DecisionTreeClassifier().fit(POINTS, labels).predict_proba, ROWS),
        "torch": exported(tmp_path / "torch", perceptron(5), ROWS, lambda: perceptron(5)),
        "program": exported(tmp_path / "program", program, ROWS),
        "records": exported(tmp_path / "records", Affine(2.0, 1.0), RECORDS),
    }
    ran = json.loads(run_mlflow(RUN, *(str(folder) for folder, *_ in folders.values())).splitlines()[-1])
    natives = {"sklearn": ["sklearn"], "tree": ["sklearn"], "torch": [], "program": ["pytorch"], "records": []}
    for name, (folder, saved, signature, answers) in folders.items():
        got, native = ran[str(folder)]
        assert native == natives[name]
        if name == "records" or name == "sklearn":
            assert got == answers
        else:
            np.testing.assert_allclose(got, answers, rtol=1e-5)
        back = import_mlflow(folder, tmp_path / name / "back")
        assert back.saved == saved
        assert back.signature == signature
        assert back.example == (RECORDS if name == "records" else ROWS)
        assert "cargobike==" in back.requirements
        assert list(load(back.saved, tmp_path / name / "back")(back.example)) == answers


def test_folders_of_mlflow_are_imported(tmp_path: Path) -> None:
    run_mlflow(MAKE, str(tmp_path))
    model = LogisticRegression().fit(POINTS, POINTS[:, 0] > 0)

    skops = imported(tmp_path, "skops")
    assert (skops.saved.flavour, skops.saved.runs_code) == ("sklearn", False)
    assert skops.signature is not None
    assert skops.signature.inputs[0].shape == (4,)
    assert skops.signature.inputs[0].datatype == "FP64"
    assert skops.example == POINTS[:2].tolist()
    assert predict(tmp_path, "skops", skops, ROWS) == model.predict(POINTS[:3]).tolist()

    pickled = imported(tmp_path, "pickle")
    assert (pickled.saved.flavour, pickled.saved.runs_code) == ("sklearn", True)
    assert pickled.saved.details["method"] == "predict_proba"
    np.testing.assert_allclose(predict(tmp_path, "pickle", pickled, ROWS), model.predict_proba(POINTS[:3]))

    module = imported(tmp_path, "pytorch")
    assert (module.saved.flavour, module.saved.runs_code) == ("torch", True)
    wanted = torch.load(tmp_path / "module.pth", weights_only=False)(torch.tensor(ROWS, dtype=torch.float32))
    np.testing.assert_allclose(predict(tmp_path, "pytorch", module, ROWS), wanted.detach(), rtol=1e-6)
    with pytest.raises(UntrustedError):
        load(Saved(flavour="torch", details=module.saved.details), tmp_path / "back-pytorch")

    function = imported(tmp_path, "function")
    assert (function.saved.flavour, function.saved.runs_code) == ("mlflow", True)
    assert function.signature is not None
    assert [field.name for field in function.signature.inputs] == ["a", "b"]
    script = (
        "import sys, json, msgspec, warnings; warnings.simplefilter('ignore'); from pathlib import Path\n"
        "from cargobike.models.flavours.registry import load\n"
        "from cargobike.models.flavours.flavour import Saved\n"
        "saved = msgspec.json.decode(sys.argv[2], type=Saved)\n"
        "print(json.dumps(load(saved, Path(sys.argv[1]))([{'a': 1.0, 'b': 2.0}, {'a': 3.0, 'b': 4.0}])))"
    )
    words = msgspec.json.encode(function.saved).decode()
    out = run_mlflow(script, str(tmp_path / "back-function"), words)
    assert json.loads(out.splitlines()[-1]) == [3.0, 7.0]


def imported(folder: Path, name: str) -> Imported:
    return import_mlflow(folder / name, folder / f"back-{name}")


def predict(folder: Path, name: str, back: Imported, rows: list[Any]) -> list[Any]:
    return list(load(back.saved, folder / f"back-{name}")(rows))
