"""Reads a folder of MLflow as a model of ours, without MLflow where its format is known, and without running code."""

from __future__ import annotations

import json
import os
import shutil
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from cargobike.core.errors import InvalidInputError
from cargobike.core.plain_files import read_plain
from cargobike.core.signatures import Signature
from cargobike.models.flavours.flavour import Saved
from cargobike.models.mlflow.exporting import DESCRIPTION, read_description
from cargobike.models.mlflow.schemas import example_from_mlflow, from_mlflow

_LIBRARIES: Final = frozenset(
    {"cloudpickle", "jax", "keras", "lightgbm", "mlflow", "numpy", "onnxruntime", "pandas", "scipy", "skops", "sklearn"}
    | {"torch", "xgboost"}
)
_MOST_BYTES: Final = 4 << 20
"""How long an `MLmodel` file or an example may be."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What was read from a folder of MLflow; its files are in the folder that was given.

    Attributes:
        saved: How the files are to be loaded; `runs_code` is true for all that a stranger's file could abuse.
        signature: What the model takes and returns; `None` if the folder does not say, or in a way that rows cannot be.
        example: A few rows; `None` if there are none.
        requirements: The packages that it needs.
        about: What else the folder says about it.
    """

    saved: Saved
    signature: Signature | None = None
    example: list[Any] | None = None
    requirements: str = ""
    about: dict[str, Any] = {}


def import_mlflow(folder: Path, into: Path) -> Imported:
    """Copy a model out of a folder of MLflow; no code of it is run.

    Args:
        folder: The folder with an `MLmodel` file.
        into: Where the files of the model are written; made if it is not there, and empty.

    Raises:
        InvalidInputError: If that is no folder of MLflow, or its file names what lies outside of it.
    """
    document = _document(folder)
    flavors = document.get("flavors")
    if not isinstance(flavors, Mapping) or not flavors:
        raise InvalidInputError(f"{folder / 'MLmodel'} names no flavors; it is no model of MLflow.")
    into.mkdir(parents=True, exist_ok=True)
    if any(into.iterdir()):
        raise InvalidInputError(f"{into} is not empty; a model is saved into a folder of its own.")
    saved, signature = _read(folder, flavors, into)
    return Imported(
        saved=saved,
        signature=signature or from_mlflow(document.get("signature")),
        example=_example(folder, document.get("saved_input_example_info")),
        requirements=_text(folder, "requirements.txt"),
        about=_about(document, list(flavors)),
    )


def _read(folder: Path, flavors: Mapping[str, Any], into: Path) -> tuple[Saved, Signature | None]:
    if isinstance(flavors.get("cargobike"), Mapping) and (folder / DESCRIPTION).is_file():
        try:
            description = read_description(folder)
        except msgspec.MsgspecError as error:
            raise InvalidInputError(f"{folder / DESCRIPTION} cannot be read: {error}.") from error
        _copy_all(_inside(folder, "data"), into)
        return _with_known_libraries(description.saved), description.signature
    for name, read in _NATIVE.items():
        flavor = flavors.get(name)
        if isinstance(flavor, Mapping) and not flavor.get("code") and (saved := read(folder, flavors, into)):
            return saved, None
    if "python_function" not in flavors:
        raise InvalidInputError(
            f"{folder} is a model of the flavors {', '.join(map(str, flavors))}; only these can be imported: "
            f"{', '.join(_NATIVE)}, python_function."
        )
    _copy_all(folder, into)
    return Saved(flavour="mlflow", libraries=("mlflow.pyfunc",), runs_code=True), None


def _with_known_libraries(saved: Saved) -> Saved:
    """Leave out modules that a stranger wants to be imported before it is trusted."""
    known = tuple(name for name in saved.libraries if name.partition(".")[0] in _LIBRARIES)
    return msgspec.structs.replace(saved, libraries=known)


def _sklearn(folder: Path, flavors: Mapping[str, Any], into: Path) -> Saved | None:
    flavor = flavors["sklearn"]
    kept = flavor.get("serialization_format")
    name = flavor.get("pickled_model")
    if kept not in ("pickle", "cloudpickle", "skops") or not isinstance(name, str):
        return None
    is_skops = kept == "skops"
    _copy(folder, name, into / ("model.skops" if is_skops else "model.pkl"))
    method = _of(flavors, "python_function", "predict_fn") or "predict"
    details: dict[str, Any] = {"method": str(method), "kept_as": "skops" if is_skops else "pickle"}
    # A skops file is data, unless it was written with types that its writer asks us to trust.
    needs_trust = not is_skops or bool(flavor.get("skops_trusted_types"))
    libraries = ("sklearn", "skops.io") if is_skops else ("sklearn",)
    return Saved(flavour="sklearn", details=details, libraries=libraries, runs_code=needs_trust)


def _onnx(folder: Path, flavors: Mapping[str, Any], into: Path) -> Saved | None:
    name = flavors["onnx"].get("data")
    if not isinstance(name, str) or flavors["onnx"].get("save_as_external_data") or _has_siblings(folder, name):
        return None
    _copy(folder, name, into / "model.onnx")
    return Saved(flavour="onnx", libraries=("onnxruntime",))


def _has_siblings(folder: Path, name: str) -> bool:
    """Tell whether weights may lie beside a model: those that are too large for one file do."""
    path = _inside(folder, name)
    return any(path.name in other.name and other != path for other in path.parent.iterdir())


def _keras(folder: Path, flavors: Mapping[str, Any], into: Path) -> Saved | None:
    flavor: Mapping[str, Any] = flavors.get("keras") or flavors["tensorflow"]
    data = flavor.get("data", "data")
    if not isinstance(data, str) or flavor.get("save_exported_model"):
        return None
    if not (_inside(folder, data) / "model.keras").is_file():
        return None
    _copy(folder, f"{data}/model.keras", into / "model.keras")
    has_code = _holds_lambda(into / "model.keras")
    return Saved(flavour="keras", details={"classes": []}, libraries=("keras",), runs_code=has_code)


def _holds_lambda(path: Path) -> bool:
    """Tell whether loading a Keras model needs its writer to be trusted; Keras refuses it otherwise."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("config.json") as file:
            return b"__lambda__" in file.read(_MOST_BYTES)
    except (zipfile.BadZipFile, KeyError, OSError):
        return False  # loading will say what is wrong


def _pytorch(folder: Path, flavors: Mapping[str, Any], into: Path) -> Saved | None:
    data = flavors["pytorch"].get("model_data", "data")
    if not isinstance(data, str):
        return None
    if (_inside(folder, data) / "model.pt2").is_file():
        _copy(folder, f"{data}/model.pt2", into / "model.pt2")
        return Saved(flavour="torch-export", libraries=("torch", "torch.export"), runs_code=True)
    if not (_inside(folder, data) / "model.pth").is_file():
        return None
    _copy(folder, f"{data}/model.pth", into / "module.pth")
    return Saved(flavour="torch", details={"kept_as": "file", "method": ""}, libraries=("torch",), runs_code=True)


_ABOUT: Final = ("model_uuid", "run_id", "utc_time_created", "mlflow_version", "metadata")
_NATIVE: Final = {
    "sklearn": _sklearn,
    "onnx": _onnx,
    "keras": _keras,
    "tensorflow": _keras,
    "pytorch": _pytorch,
}
"""Flavors of MLflow that need no MLflow here; each returns nothing if it was written in a way that needs it."""


def _document(folder: Path) -> dict[str, Any]:
    path = folder / "MLmodel"
    try:
        document = yaml.safe_load(_limited(path))
    except FileNotFoundError:
        raise InvalidInputError(f"{folder} holds no MLmodel file; it is no model of MLflow.") from None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}.") from error
    if not isinstance(document, dict):
        raise InvalidInputError(f"{path} does not describe a model.")
    return document


def _limited(path: Path) -> str:
    data = read_plain(path)
    if len(data) > _MOST_BYTES:
        raise InvalidInputError(f"{path} has {len(data):,} bytes; more than {_MOST_BYTES:,} are not read.")
    return data.decode()


def _inside(folder: Path, name: str) -> Path:
    """Return a path that a file of the folder names, if it is in the folder."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InvalidInputError(f"{folder / 'MLmodel'} names {name!r}, which lies outside of the folder.")
    return path


def _copy(folder: Path, name: str, to: Path) -> None:
    path = _inside(folder, name)
    if not path.is_file():
        raise InvalidInputError(f"{folder / 'MLmodel'} names {name!r}, and there is no such file.")
    shutil.copyfile(path, to)


def _copy_all(source: Path, into: Path) -> None:
    """Copy a folder whole; links, pipes and devices in it are refused."""
    for root, folders, files in os.walk(source):
        below = into / Path(root).relative_to(source)
        for name in (*folders, *files):
            path = Path(root, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise InvalidInputError(f"{path} is a link, or no plain file; it is not copied.")
        below.mkdir(parents=True, exist_ok=True)
        for name in files:
            shutil.copyfile(Path(root, name), below / name)


def _example(folder: Path, about: object) -> list[Any] | None:
    name = about.get("artifact_path") if isinstance(about, Mapping) else None
    if not isinstance(name, str):
        return None
    path = _inside(folder, name)
    try:
        return example_from_mlflow(about, json.loads(_limited(path)))
    except (OSError, ValueError):
        return None  # an example is a help, and its absence no reason to refuse a model


def _text(folder: Path, name: str) -> str:
    try:
        return _limited(_inside(folder, name))
    except (OSError, ValueError):
        return ""


def _about(document: Mapping[str, Any], flavors: list[Any]) -> dict[str, Any]:
    kept = {key: document.get(key) for key in _ABOUT}
    plain = json.loads(json.dumps({key: value for key, value in kept.items() if value is not None}, default=str))
    return {**plain, "flavors": [str(name) for name in flavors]}


def _of(flavors: Mapping[str, Any], name: str, key: str) -> Any:
    flavor = flavors.get(name)
    return flavor.get(key) if isinstance(flavor, Mapping) else None
