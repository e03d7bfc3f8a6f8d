"""Flavours by name, and the one that fits a model, found without importing a library that is not loaded yet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.lazy import in_words
from cargobike.core.registering.modelling import Predictor
from cargobike.core.registering.registry import Registry
from cargobike.models.flavours.flavour import Flavour, Given, Saved

_HERE: Final = "cargobike.models.flavours"

FLAVOURS: Final = Registry(
    "flavour",
    "cargobike.flavours",
    {
        "python": f"{_HERE}.python:PythonFlavour",
        "torch": f"{_HERE}.torch:TorchFlavour",
        "torch-export": f"{_HERE}.torch_export:TorchExportFlavour",
        "sklearn": f"{_HERE}.sklearn:SklearnFlavour",
        "keras": f"{_HERE}.keras:KerasFlavour",
        "onnx": f"{_HERE}.onnx:OnnxFlavour",
        "jax": f"{_HERE}.jax:JaxFlavour",
        "xgboost": f"{_HERE}.xgboost:XGBoostFlavour",
        "lightgbm": f"{_HERE}.lightgbm:LightGBMFlavour",
        "mlflow": f"{_HERE}.mlflow:MLflowFlavour",
    },
    aliases={
        "torchexport": "torch-export",
        "pytorch": "torch",
        "scikitlearn": "sklearn",
        "function": "python",
        "pyfunc": "python",
    },
)
"""What `flavour="…"` understands: to add one, add a line, and how it is recognised below."""

_CLASSES: Final[dict[tuple[str, str], str]] = {
    ("keras", "Model"): "keras",  # which is a module of torch too, if Keras runs on that
    ("torch", "ExportedProgram"): "torch-export",
    ("torch", "Module"): "torch",
    ("xgboost", "Booster"): "xgboost",
    ("xgboost", "XGBModel"): "xgboost",
    ("lightgbm", "Booster"): "lightgbm",
    ("lightgbm", "LGBMModel"): "lightgbm",
    ("onnx", "ModelProto"): "onnx",
    ("jax", "Exported"): "jax",
    ("jaxlib", "PjitFunction"): "jax",
    ("sklearn", "BaseEstimator"): "sklearn",
}
"""Flavours by the library and the name of a class that the model's class comes from; the first that fits is taken."""

_SUFFIXES: Final[dict[str, str]] = {".onnx": "onnx", ".pt2": "torch-export", ".keras": "keras"}
"""Flavours of files that are models themselves."""

_EXTRAS: Final = {
    "safetensors": "models",
    "skops": "models",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "torch": "torch",
    "sklearn": "sklearn",
    "keras": "keras",
}
"""What of ours brings a library."""


def save(
    model: Any,
    folder: Path,
    *,
    factory: Any = None,
    example: Sequence[Any] | None = None,
    flavour: str | None = None,
) -> Saved:
    """Write a model into a folder.

    Args:
        model: A function of a list of rows; a class or object with `predict`; a model of a library that there is a
            flavour for, or a method of it such as `classifier.predict_proba`; the path of a file that is a model.
        folder: Where to; made if it is not there, and empty.
        factory: What makes the model, for flavours that keep weights alone.
        example: A few rows, as `rows_of` returns them.
        flavour: How to save it; the one that fits, unless said.

    Raises:
        InvalidInputError: If no flavour fits, or it cannot be saved.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InvalidInputError(f"{folder} is not empty; a model is saved into a folder of its own.")
    given = _given(model, factory, None if example is None else list(example))
    name = flavour or recognise(given.model)
    if name == "python" and given.method:
        given = Given(model, "", factory, given.example)  # a method of an object is a function like any other
    return _find(name).save(given, folder)


def load(saved: Saved, folder: Path) -> Predictor:
    """Return what predicts: a function from a list of rows to a list of plain answers, one for each.

    Whether `saved.runs_code` is acceptable is for the caller to decide before.

    Raises:
        StoreError: If a file is missing or damaged.
        MissingLibraryError: If its library is not installed here.
        UntrustedError: If loading runs code, and `saved` says that it does not.
    """
    flavour = _find(saved.flavour)
    try:
        return flavour.load(saved, folder)
    except ModuleNotFoundError as error:
        raise _lacking(saved.flavour, error) from error


def recognise(model: Any) -> str:
    """Return the name of the flavour that fits a model.

    Raises:
        InvalidInputError: If none does; lists what can be given.
    """
    if isinstance(model, str | os.PathLike):
        return _of_file(Path(model))
    classes = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(model).__mro__}
    for mark, name in _CLASSES.items():
        if mark in classes:
            return name
    for name in FLAVOURS.names():
        if name not in FLAVOURS.own and _find(name).recognises(model):
            return name
    if callable(model) or callable(getattr(model, "predict", None)):
        return "python"
    raise InvalidInputError(
        f"A {type(model).__name__} was given as model, which is no model of a known kind. Give a function of a list of "
        f"rows, a class or object with a method predict, or a model of one of: {', '.join(FLAVOURS.names())}."
    )


def _given(model: Any, factory: Any, example: list[Any] | None) -> Given:
    """Take a method of a model apart: the model, and which of its methods predicts."""
    owner = getattr(model, "__self__", None)
    if owner is not None and not isinstance(owner, type) and callable(model) and hasattr(model, "__func__"):
        return Given(owner, model.__func__.__name__, factory, example)
    return Given(model, "", factory, example)


def _of_file(path: Path) -> str:
    name = _SUFFIXES.get(path.suffix.lower())
    if name is None:
        raise InvalidInputError(
            f"{path} is no file of a known kind; files that are models themselves end in {', '.join(_SUFFIXES)}. Give "
            "the model itself, or files=… to keep files as they are."
        )
    return name


def _find(name: str) -> Flavour:
    try:
        kind = FLAVOURS.find(name)
    except ModuleNotFoundError as error:
        raise _lacking(name, error) from error
    if not (isinstance(kind, type) and issubclass(kind, Flavour)):
        raise InvalidInputError(f"flavour={name!r} stands for {kind!r}, which is not a Flavour.")
    return kind()


def _lacking(name: str, error: ModuleNotFoundError) -> ImportError:
    library = (error.name or "").partition(".")[0]
    return in_words(error, f"A model of the flavour {name!r}", _EXTRAS.get(library, ""))
