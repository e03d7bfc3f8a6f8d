"""Writes a version as a folder that MLflow loads: as a Python function, and natively where it knows the format."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from cargobike.core.errors import InvalidInputError
from cargobike.core.signatures import Signature
from cargobike.core.version import __version__
from cargobike.models.flavours.flavour import Saved
from cargobike.models.mlflow.schemas import example_to_mlflow, to_mlflow

DATA: Final = "data"
"""The folder that holds the files of the model."""
DESCRIPTION: Final = "cargobike.json"
"""How the model was saved, for `loading.py` and for importing it again."""
LOADER: Final = "cargobike.models.mlflow.loading"
_DISTRIBUTIONS: Final = {"sklearn": "scikit-learn", "tensorflow": "tensorflow-cpu", "xgboost": "xgboost-cpu"}


def export_mlflow(
    folder: Path,
    *,
    files: Path,
    saved: Saved,
    title: str,
    signature: Signature | None = None,
    example: Sequence[Any] | None = None,
    requirements: str = "",
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a version of a model as a folder of MLflow.

    Args:
        folder: Where to; made if it is not there, and empty.
        files: The folder with the files of the version.
        saved: How they were saved.
        title: The name and number of the version, such as `digits:3`.
        signature: What it takes and returns.
        example: A few rows.
        requirements: The packages that it needs; those that are installed here of its libraries, if empty.
        about: More to keep with it, as plain data: metrics, a fingerprint, a description.

    Raises:
        InvalidInputError: If the folder is not empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InvalidInputError(f"{folder} is not empty; a model of MLflow is a folder of its own.")
    shutil.copytree(files, folder / DATA)
    (folder / DESCRIPTION).write_bytes(msgspec.json.encode(_Description(title, saved, signature)))
    packages = requirements.strip().splitlines() or _packages(saved)
    if not any(line.startswith("cargobike") for line in packages):
        packages.insert(0, f"cargobike=={__version__}")
    native = _native(saved)
    document: dict[str, Any] = {
        "flavors": {
            "python_function": {
                "loader_module": LOADER,
                "data": DATA,
                "python_version": platform.python_version(),
                "env": {"conda": "conda.yaml", "virtualenv": "python_env.yaml"},
            },
            **native,
            "cargobike": {"version": __version__, "title": title, "description": DESCRIPTION, "data": DATA},
        },
        "metadata": {"cargobike": {"title": title, **(about or {})}},
        "model_uuid": uuid.uuid4().hex,
        "utc_time_created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    }
    if signature is not None:
        document["signature"] = to_mlflow(signature)
    if example:
        document["saved_input_example_info"], content = example_to_mlflow(example)
        (folder / document["saved_input_example_info"]["artifact_path"]).write_text(content)
    _write_environment(folder, packages)
    (folder / "MLmodel").write_text(yaml.safe_dump(document, sort_keys=False))


class _Description(msgspec.Struct, frozen=True):
    title: str
    saved: Saved
    signature: Signature | None = None


def read_description(folder: Path) -> _Description:
    """Read how a model was saved from a folder that was exported."""
    return msgspec.json.decode((folder / DESCRIPTION).read_bytes(), type=_Description)


def _native(saved: Saved) -> dict[str, Any]:
    """Return the flavour of MLflow that reads the same files; nothing if there is none."""
    details = saved.details
    if saved.flavour == "sklearn":
        is_skops = details["kept_as"] == "skops"
        path = f"{DATA}/model.{'skops' if is_skops else 'pkl'}"
        kept = "skops" if is_skops else "cloudpickle"
        sklearn: dict[str, Any] = {"pickled_model": path, "serialization_format": kept, "code": None}
        if details.get("types"):
            sklearn["skops_trusted_types"] = details["types"]
        version = {"sklearn_version": _version("scikit-learn")}
        return {"sklearn": {**sklearn, **version}}
    if saved.flavour == "onnx":
        path = f"{DATA}/model.onnx"
        flavor = {"data": path, "onnx_version": _version("onnx"), "providers": ["CPUExecutionProvider"], "code": None}
        return {"onnx": flavor}
    if saved.flavour == "keras" and not saved.runs_code:
        return {"keras": {"data": DATA, "keras_version": _version("keras"), "save_exported_model": False}}
    if saved.flavour == "torch-export":
        return {"pytorch": {"model_data": DATA, "pytorch_version": _version("torch"), "code": None}}
    return {}


def _packages(saved: Saved) -> list[str]:
    names = dict.fromkeys(library.partition(".")[0] for library in saved.libraries)
    packages = [f"cargobike=={__version__}"]
    for name in names:
        distribution = _DISTRIBUTIONS.get(name, name)
        if version := _version(distribution):
            packages.append(f"{distribution}=={version}")
    return packages


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _write_environment(folder: Path, packages: list[str]) -> None:
    (folder / "requirements.txt").write_text("\n".join(packages) + "\n")
    python = platform.python_version()
    environment = {"python": python, "build_dependencies": ["pip"], "dependencies": ["-r requirements.txt"]}
    (folder / "python_env.yaml").write_text(yaml.safe_dump(environment, sort_keys=False))
    conda = {
        "name": "mlflow-env",
        "channels": ["conda-forge"],
        "dependencies": [f"python={python}", "pip", {"pip": packages}],
    }
    (folder / "conda.yaml").write_text(yaml.safe_dump(conda, sort_keys=False))
