"""Models of Keras 3, as `.keras` files; what they need of the user's classes beside them, as a pickle."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import keras

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Datatype
from cargobike.models.flavours.answers import named
from cargobike.models.flavours.batches import next_size, predict_in_pieces
from cargobike.models.flavours.files import check_archive, reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.pickling import read_pickle, write_pickle
from cargobike.models.flavours.rows import Stacked, stack

_FILE: Final = "model.keras"
_CLASSES: Final = "classes.pkl"


class KerasFlavour(Flavour):
    """Keeps a model as a `.keras` file; with classes of the user, or lambdas, loading it runs code."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the model, or copy the file that was given."""
        path = folder / _FILE
        if isinstance(given.model, str | os.PathLike):
            if not Path(given.model).is_file():
                raise InvalidInputError(f"There is no file {given.model}.")
            shutil.copyfile(given.model, path)
        else:
            given.model.save(path)
        config = _config(path)
        custom = {name: _class_of(module, name) for module, name in sorted(set(_own_classes(config)))}
        lacking = [name for name, kind in custom.items() if kind is None]
        if lacking:
            raise InvalidInputError(
                f"The model uses classes that are not here: {', '.join(lacking)}. Import what defines them first."
            )
        has_code = bool(custom) or "__lambda__" in json.dumps(config)
        libraries = write_pickle(custom, folder / _CLASSES, "a class of the model") if custom else ()
        return Saved(
            flavour="keras",
            details={"classes": sorted(custom)},
            libraries=("keras", *(name for name in libraries if name != "keras")),
            runs_code=has_code,
        )

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Read the model."""
        path = folder / _FILE
        classes = read_pickle(folder / _CLASSES, saved) if saved.details.get("classes") else {}
        with reading(path):
            check_archive(path)
            model = keras.saving.load_model(path, custom_objects=classes, compile=False, safe_mode=not saved.runs_code)
        return _KerasPredictor(model)


class _KerasPredictor:
    floats: Datatype = "FP32"

    def __init__(self, model: Any) -> None:
        self._model = model
        self._types = {put.name: str(put.dtype) for put in _inputs(model)}
        # With JAX every number of rows is compiled anew.
        self._compiles = keras.config.backend() == "jax"

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        stacked = stack(rows, "float32")
        return predict_in_pieces(self._predict, stacked, len(rows), next_size(len(rows)) if self._compiles else 0)

    def _predict(self, stacked: Stacked) -> Any:
        if isinstance(stacked, dict):
            stacked = {name: column.astype(self._types.get(name, column.dtype)) for name, column in stacked.items()}
        elif len(self._types) == 1:
            stacked = stacked.astype(next(iter(self._types.values())), copy=False)
        return named(self._model.predict_on_batch(stacked))


def _inputs(model: Any) -> list[Any]:
    try:
        return list(model.inputs or [])
    except AttributeError:
        return []  # a model by subclassing does not say what it takes


def _config(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("config.json"))


def _own_classes(config: Any) -> Iterator[tuple[str, str]]:
    """Yield module and name of each class that is not Keras's own."""
    if isinstance(config, dict):
        name, module = config.get("class_name"), config.get("module")
        if isinstance(name, str) and "config" in config and (config.get("registered_name") or module):
            own = not str(module or "").startswith("keras") and name not in ("__lambda__", "function", "__numpy__")
            if own and module != "builtins":
                yield str(module or ""), name
        config = list(config.values())
    if isinstance(config, list):
        for part in config:
            yield from _own_classes(part)


def _class_of(module: str, name: str) -> Any:
    if (kind := getattr(sys.modules.get(module), name, None)) is not None:
        return kind
    own = keras.saving.get_custom_objects().values()
    return next((kind for kind in own if getattr(kind, "__name__", "") == name), None)
