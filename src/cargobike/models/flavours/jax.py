"""Functions of JAX, exported: what is kept is the compiled program with its weights, not the function."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import jax
import jax.export
import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Datatype
from cargobike.models.flavours.answers import named
from cargobike.models.flavours.batches import next_size, predict_in_pieces
from cargobike.models.flavours.files import reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.rows import Stacked, stack

_FILE: Final = "function.jax"
_BY_HAND: Final = "Or export it yourself and give jax.export.export(function)(…), or save it with flavour='python'."


class JaxFlavour(Flavour):
    """Keeps a function as what `jax.export` makes of it, for any number of rows."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Export the function for rows like those of the example."""
        exported = given.model if isinstance(given.model, jax.export.Exported) else _export(given)
        (folder / _FILE).write_bytes(exported.serialize())
        return Saved(flavour="jax", libraries=("jax", "jax.export"))

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Read the program."""
        path = folder / _FILE
        with reading(path):
            exported = jax.export.deserialize(bytearray(path.read_bytes()))
        return _ExportedPredictor(exported)


class _ExportedPredictor:
    floats: Datatype = "FP32"

    def __init__(self, exported: Any) -> None:
        args, self._by_name = jax.tree.unflatten(exported.in_tree, exported.in_avals)
        self._avals = list(args)
        first = exported.in_avals[0].shape if exported.in_avals else ()
        self._size = first[0] if first and isinstance(first[0], int) else 0
        self._call = jax.jit(exported.call)

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        # Every number of rows is compiled anew.
        size = self._size or next_size(len(rows))
        return predict_in_pieces(self._predict, stack(rows), len(rows), size)

    def _predict(self, stacked: Stacked) -> Any:
        if isinstance(stacked, dict):
            columns = {name: column.astype(self._by_name[name].dtype) for name, column in stacked.items()}
            result = self._call(**columns)
        else:
            result = self._call(stacked.astype(self._avals[0].dtype, copy=False))
        return jax.tree.map(np.asarray, named(result))


def _export(given: Given) -> Any:
    if not callable(given.model):
        raise InvalidInputError(f"A {type(given.model).__name__} was given; give a function of JAX arrays.")
    if not given.example:
        raise InvalidInputError(
            "A function of JAX is exported for rows of a shape; give example=[…] with a few of them. " + _BY_HAND
        )
    scope = jax.export.SymbolicScope()
    stacked = stack(given.example)
    function = given.model if hasattr(given.model, "lower") else jax.jit(given.model)
    platforms = sorted({jax.default_backend().replace("gpu", "cuda"), "cpu"})
    export = jax.export.export(function, platforms=platforms)
    try:
        if isinstance(stacked, dict):
            return export(**{name: _shape(column, scope) for name, column in stacked.items()})
        return export(_shape(stacked, scope))
    except Exception as error:
        raise InvalidInputError(
            f"This function cannot be exported for any number of rows: {type(error).__name__}: {error}. Its argument "
            f"is an array whose first axis is the rows (one keyword argument for each field, if rows have several). "
            f"{_BY_HAND}"
        ) from error


def _shape(column: Any, scope: Any) -> Any:
    dtype = jax.dtypes.canonicalize_dtype(column.dtype)
    dims = ", ".join(["rows", *map(str, column.shape[1:])])
    return jax.ShapeDtypeStruct(jax.export.symbolic_shape(dims, scope=scope), dtype)
