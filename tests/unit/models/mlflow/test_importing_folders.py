"""Folders of MLflow that are damaged, foreign or hostile."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cargobike.core.errors import CargobikeError, InvalidInputError, UntrustedError
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, save
from cargobike.models.mlflow.exporting import export_mlflow
from cargobike.models.mlflow.importing import import_mlflow

SKLEARN = {"pickled_model": "model.pkl", "serialization_format": "pickle"}


class Hostile:
    def __reduce__(self) -> Any:
        return os.mkdir, ("/nonexistent/cargobike",)


def folder_of(folder: Path, flavors: Any, **more: Any) -> Path:
    folder.mkdir()
    (folder / "MLmodel").write_text(yaml.safe_dump({"flavors": flavors, **more}))
    (folder / "model.pkl").write_bytes(pickle.dumps(Hostile()))
    return folder


def test_a_pickle_is_copied_not_run_and_needs_trust(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", {"sklearn": SKLEARN, "python_function": {"predict_fn": "predict_proba"}})
    back = import_mlflow(folder, tmp_path / "back")
    assert back.saved.runs_code
    assert back.saved.details == {"method": "predict_proba", "kept_as": "pickle"}
    with pytest.raises(UntrustedError):
        load(msgspec.structs.replace(back.saved, runs_code=False), tmp_path / "back")


def test_code_beside_a_model_is_left_to_mlflow(tmp_path: Path) -> None:
    flavors = {"sklearn": {**SKLEARN, "code": "code"}, "python_function": {"loader_module": "mlflow.sklearn"}}
    back = import_mlflow(folder_of(tmp_path / "model", flavors), tmp_path / "back")
    assert back.saved == Saved(flavour="mlflow", libraries=("mlflow.pyfunc",), runs_code=True)
    assert (tmp_path / "back" / "MLmodel").is_file()


@pytest.mark.parametrize(
    ("flavors", "words"),
    [
        ({"sklearn": {**SKLEARN, "pickled_model": "../secret"}}, "'../secret', which lies outside of the folder"),
        ({"sklearn": {**SKLEARN, "pickled_model": "/etc/passwd"}}, "lies outside"),
        ({"sklearn": {**SKLEARN, "pickled_model": "link"}}, "lies outside"),
        ({"sklearn": {**SKLEARN, "pickled_model": "absent"}}, "there is no such file"),
        ({"onnx": {"data": "../secret"}}, "lies outside"),
        ({"keras": {"data": ".."}}, "lies outside"),
        ({"pytorch": {"model_data": "/"}}, "lies outside"),
        ({"spark": {}}, "of the flavors spark; only these can be imported: sklearn, onnx"),
        ({}, "names no flavors"),
        ([1], "names no flavors"),
        ({"python_function": {}}, "is a link, or no plain file"),
    ],
)
def test_what_cannot_be_imported_is_refused(flavors: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = folder_of(tmp_path / "model", flavors)
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidInputError, match=words):
        import_mlflow(folder, tmp_path / "back")
    assert not [path for path in (tmp_path / "back").rglob("*") if path.read_text() == "secret"]


@pytest.mark.parametrize(
    "content", [b"", b"- 1", b"\xff\xfe", b"a: [", b"!!python/object/apply:os.mkdir [/nonexistent/x]"]
)
def test_a_file_that_describes_no_model_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "MLmodel").write_bytes(content)
    with pytest.raises(InvalidInputError, match="MLmodel"):
        import_mlflow(tmp_path, tmp_path / "back")


def test_a_folder_without_a_description_and_a_full_target_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="holds no MLmodel file"):
        import_mlflow(tmp_path, tmp_path / "back")
    folder = folder_of(tmp_path / "model", {"sklearn": SKLEARN})
    with pytest.raises(InvalidInputError, match="is not empty"):
        import_mlflow(folder, folder)


def test_a_huge_description_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "MLmodel").write_bytes(b"a" * (5 << 20))
    with pytest.raises(InvalidInputError, match="more than"):
        import_mlflow(tmp_path, tmp_path / "back")
    (tmp_path / "MLmodel").unlink()
    os.mkfifo(tmp_path / "MLmodel")
    with pytest.raises(InvalidInputError, match="not a plain file"):
        import_mlflow(tmp_path, tmp_path / "back")


def test_an_exported_folder_cannot_lie_about_what_it_runs(tmp_path: Path) -> None:
    saved = save(sum, tmp_path / "files", flavour="python")
    lie = msgspec.structs.replace(saved, runs_code=False, libraries=("antigravity", "numpy"))
    export_mlflow(tmp_path / "model", files=tmp_path / "files", saved=lie, title="sums:1")
    back = import_mlflow(tmp_path / "model", tmp_path / "back")
    assert back.saved.libraries == ("numpy",)
    with pytest.raises(UntrustedError):
        load(back.saved, tmp_path / "back")
    (tmp_path / "model" / "cargobike.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"cargobike.json cannot be read"):
        import_mlflow(tmp_path / "model", tmp_path / "again")
    with pytest.raises(InvalidInputError, match="is not empty"):
        export_mlflow(tmp_path / "model", files=tmp_path / "files", saved=saved, title="sums:1")


def test_a_hostile_example_or_signature_is_left_out(tmp_path: Path) -> None:
    flavors = {"sklearn": SKLEARN}
    about = {"artifact_path": "model.pkl", "type": "ndarray"}
    folder = folder_of(tmp_path / "model", flavors, saved_input_example_info=about, signature={"inputs": "{"})
    back = import_mlflow(folder, tmp_path / "back")
    assert back.example is None
    assert back.signature is None
    assert back.about == {"flavors": ["sklearn"]}
    about["artifact_path"] = "../../secret"
    folder = folder_of(tmp_path / "other", flavors, saved_input_example_info=about)
    with pytest.raises(CargobikeError, match="lies outside"):
        import_mlflow(folder, tmp_path / "again")
