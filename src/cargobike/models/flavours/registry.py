"""Flavours by name, and the one that fits a model, found without importing a library that is not loaded yet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError, MissingLibraryError
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
        "sklearn": f"{_HERE}.sklearn:SklearnFlavour",
    },
    aliases={"pytorch": "torch", "scikitlearn": "sklearn", "function": "python", "pyfunc": "python"},
)
"""What `flavour="…"` understands: to add one, add a line, and how it is recognised below."""

_CLASSES: Final[dict[tuple[str, str], str]] = {
    ("torch", "Module"): "torch",
    ("sklearn", "BaseEstimator"): "sklearn",
}
"""Flavours by the library and the name of a class that the model's class comes from; the first that fits is taken."""

_SUFFIXES: Final[dict[str, str]] = {}
"""Flavours of files that are models themselves."""


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
    return _find(saved.flavour).load(saved, folder)


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
    except MissingLibraryError:
        raise
    except ModuleNotFoundError as error:
        raise in_words(error, f"A model of the flavour {name!r}", FLAVOURS.aliases.get(name, name)) from error
    if not (isinstance(kind, type) and issubclass(kind, Flavour)):
        raise InvalidInputError(f"flavour={name!r} stands for {kind!r}, which is not a Flavour.")
    return kind()
