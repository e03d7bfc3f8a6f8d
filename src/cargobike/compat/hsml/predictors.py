"""What answers requests of a deployment that the older libraries' names made: a script, or files of a framework."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from cargobike import models
from cargobike.compat.as_is.standing import stand_in
from cargobike.core.errors import InvalidInputError, PredictionError, UntrustedError
from cargobike.core.registering.lazy import load

INPUTS: Final = "inputs"
"""The field of a row that holds all instances of a request."""
VERB: Final = "verb"

_FILES: Final = {"sklearn": (".pkl", ".pickle", ".joblib"), "keras": (".keras", ".h5")}


class Asking:
    """Answers requests: a row is a request with all its instances, or one instance that came by itself."""

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one answer for each row."""
        return [self._answer(row) for row in rows]

    def predict(self, rows: list[Any]) -> list[Any]:
        """Return one answer for each row."""
        return self(rows)

    def ask(self, inputs: Any, verb: str) -> Any:
        """Return the answers to the instances of a request."""
        raise NotImplementedError

    def _answer(self, row: Any) -> Any:
        if isinstance(row, dict) and INPUTS in row and set(row) <= {INPUTS, VERB}:
            return _plain(self.ask(row[INPUTS], row.get(VERB, "predict")))
        answers = _plain(self.ask([row], "predict"))
        return answers[0] if isinstance(answers, list) and len(answers) == 1 else answers


class Script(Asking):
    """A script with a class `Predict`, which is made when the model is loaded.

    Args:
        source: The script.
        path: Where it lay, for tracebacks.
        model: The model whose files it reads, such as `digits:3`; empty if there is none.
        number: The version as scripts know it.
    """

    def __init__(self, source: str, path: str, model: str = "", number: int = 0) -> None:
        compile(source, path, "exec")  # what is no Python is said now
        if "class Predict" not in source:
            raise InvalidInputError(
                f"{path} has no class Predict. Write one with __init__(self) and predict(self, inputs), which returns "
                "a list."
            )
        self._said = (source, path, model, number)

    def __getstate__(self) -> tuple[str, str, str, int]:
        return self._said

    def __setstate__(self, state: tuple[str, str, str, int]) -> None:
        self._said = state
        self._made = self._make()

    def ask(self, inputs: Any, verb: str) -> Any:
        """Call `Predict.predict`, or `classify` and `regress`, as the request says."""
        method = getattr(self._made, verb, None)
        if not callable(method):
            raise PredictionError(f"class Predict of {self._said[1]} has no method {verb}.")
        return method(inputs)

    def _make(self) -> Any:
        source, path, model, number = self._said
        version = models.get(model) if model else None
        if version is not None:
            folder = str(version.folder() / "model")
            os.environ.update(
                MODEL_FILES_PATH=folder,
                ARTIFACT_FILES_PATH=folder,
                MODEL_NAME=version.name,
                MODEL_VERSION=str(number),
            )
        for library in ("hopsworks", "hsfs", "hsml", "hops"):
            if library not in sys.modules and importlib.util.find_spec(library) is None:
                stand_in(library)
        module = types.ModuleType("predictor_script")
        module.__file__ = path
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - the user's own script is what is served
        return _made_with_what_it_asks_for(module.Predict, version.name if version else "", number)


class Files(Asking):
    """Files of a framework that need no script: a pickled estimator, a model of Keras, a SavedModel of TensorFlow.

    Args:
        model: The model whose files are served, such as `digits:3`.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        _servable(_trusted(model))

    def __getstate__(self) -> str:
        return self._model

    def __setstate__(self, state: str) -> None:
        self._model = state
        self._predict = _loaded(_trusted(state))

    def ask(self, inputs: Any, verb: str) -> Any:
        """Return the answers of the model."""
        return self._predict(inputs)


def _made_with_what_it_asks_for(kind: Any, name: str, number: int) -> Any:
    """Make a `Predict`; later ones take the project, the deployment, the model or a logger."""
    wanted = list(inspect.signature(kind).parameters)
    given: dict[str, Any] = {"async_logger": None, "deployment": None}
    if "project" in wanted:
        given["project"] = load("cargobike.compat.hopsworks.project:current_project")()
    if "model" in wanted:
        given["model"] = load("cargobike.compat.hsml.model:Model").found(name, number)
    return kind(**{key: value for key, value in given.items() if key in wanted})


def _trusted(model: str) -> Path:
    """Return the folder with the files of a model.

    Raises:
        UntrustedError: If it was brought in from elsewhere, and loading it would run code of its files.
    """
    version = models.get(model)
    folder = version.folder() / "model"
    if version.is_imported and _servable(folder)[0] == "sklearn":
        raise UntrustedError(
            f"{model} was brought in from elsewhere, and loading its pickle runs code that is in it. If you trust who "
            "made it, load it yourself in a script with class Predict."
        )
    return folder


def _servable(folder: Path) -> tuple[str, Path]:
    """Return how a folder can be served, and the file.

    Raises:
        InvalidInputError: If it cannot be without a script.
    """
    saved = next(iter(sorted(folder.rglob("saved_model.pb"))), None)
    if saved is not None:
        return "saved_model", saved.parent
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for kind, suffixes in _FILES.items():
        fitting = [path for path in files if path.suffix in suffixes]
        if len(fitting) == 1:
            return kind, fitting[0]
    names = ", ".join(path.name for path in files[:10])
    raise InvalidInputError(
        f"The model has the files {names}, of which none says how it predicts. Give script_file=…, a script with "
        "class Predict, or keep one .pkl, .joblib or .keras file or a SavedModel."
    )


def _loaded(folder: Path) -> Any:
    kind, path = _servable(folder)
    if kind == "saved_model":
        return _saved_model(path)
    if kind == "keras":
        model = load("keras.saving:load_model")(path, compile=False)
        return lambda inputs: model.predict(np.asarray(inputs), verbose=0)
    estimator = load("joblib:load")(path)  # the files of a model that this project registered
    return lambda inputs: estimator.predict(np.asarray(inputs))


def _saved_model(path: Path) -> Any:
    tensors = load("tensorflow:constant")
    loaded = load("tensorflow:saved_model").load(str(path))
    call = loaded.signatures["serving_default"]
    name, wanted = next(iter(call.structured_input_signature[1].items()))

    def predict(inputs: Any) -> Any:
        answers = call(**{name: tensors(np.asarray(inputs).astype(wanted.dtype.as_numpy_dtype))})
        found = {key: value.numpy().tolist() for key, value in answers.items()}
        if len(found) == 1:
            return next(iter(found.values()))
        return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]

    predict.keep = loaded  # type: ignore[attr-defined]  # its variables go with it
    return predict


def instances_of(data: Any, inputs: Any) -> Any:
    """Return the instances of a request: a flat list is one instance.

    Raises:
        InvalidInputError: If nothing, or both, was given.
    """
    if (data is None) == (inputs is None):
        raise InvalidInputError('Give either data={"instances": […]} or inputs=[…].')
    if inputs is not None:
        return inputs if _is_nested(inputs) else [inputs]
    if isinstance(data, dict):
        found = next((data[key] for key in ("instances", "inputs") if key in data), None)
        if found is not None:
            return found
    raise InvalidInputError(f'{data!r} was given; {{"instances": […]}} or {{"inputs": […]}} is needed.')


def _is_nested(inputs: Any) -> bool:
    if isinstance(inputs, dict):
        return False
    first = inputs[0] if isinstance(inputs, Sequence) and len(inputs) else inputs
    return isinstance(first, list | tuple | dict) or hasattr(first, "shape")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
