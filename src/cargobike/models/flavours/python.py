"""Functions, classes and objects of the user: anything that takes a list of rows and returns an answer for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.modelling import Predictor
from cargobike.models.flavours.answers import answers_of
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.pickling import read_pickle, write_pickle

_FILE: Final = "model.pkl"


class PythonFlavour(Flavour):
    """Keeps a function, or an object with `predict`, as a pickle; a class is made when it is loaded."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Pickle it."""
        model = given.model
        if isinstance(model, type) and not _can_predict(model):
            raise InvalidInputError(
                f"The class {model.__name__} has neither a method predict nor __call__; add predict(self, rows), which "
                "returns one answer for each row."
            )
        title = getattr(model, "__qualname__", type(model).__qualname__)
        libraries = write_pickle(model, folder / _FILE, title)
        return Saved(flavour="python", details={"title": title}, libraries=libraries, runs_code=True)

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Unpickle it, and make the object if it is a class."""
        model = read_pickle(folder / _FILE, saved)
        if isinstance(model, type):
            model = model()
        predict = getattr(model, "predict", None)
        predictor = Calling(predict if callable(predict) else model)
        stream = getattr(model, "stream", None)
        return Streaming(predictor.predict, stream) if callable(stream) else predictor


class Calling:
    """A predictor that calls a function of a list of rows."""

    def __init__(self, predict: Callable[[list[Any]], Any]) -> None:
        self.predict = predict

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        return answers_of(self.predict(rows), len(rows))


class Streaming(Calling):
    """A predictor that can also answer one row piece by piece."""

    def __init__(self, predict: Callable[[list[Any]], Any], stream: Callable[[Any], Iterator[Any]]) -> None:
        super().__init__(predict)
        self._stream = stream

    def stream(self, row: Any) -> Iterator[Any]:
        """Yield plain values."""
        for piece in self._stream(row):
            yield answers_of([piece], 1)[0]


def _can_predict(kind: type) -> bool:
    return callable(getattr(kind, "predict", None)) or any("__call__" in vars(part) for part in kind.__mro__)
