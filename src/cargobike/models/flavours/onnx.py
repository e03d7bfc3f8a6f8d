"""ONNX models, which onnxruntime runs; they hold data only, so that loading one runs no code."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Final

import onnxruntime

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Datatype
from cargobike.models.flavours.batches import predict_in_pieces
from cargobike.models.flavours.files import reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.rows import Stacked, stack

_FILE: Final = "model.onnx"
_NUMPY: Final = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class OnnxFlavour(Flavour):
    """Keeps a model as one `.onnx` file."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the model, with all its weights in one file."""
        path = folder / _FILE
        if isinstance(given.model, str | os.PathLike):
            _copy(Path(given.model), path)
        elif hasattr(given.model, "SerializeToString"):
            path.write_bytes(given.model.SerializeToString())
        else:
            raise InvalidInputError(
                f"A {type(given.model).__name__} was given; give an onnx.ModelProto or the path of an .onnx file."
            )
        try:
            _open(path)
        except Exception as error:
            raise InvalidInputError(f"onnxruntime cannot run this model: {error}") from error
        return Saved(flavour="onnx", libraries=("onnxruntime",))

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Read the model."""
        path = folder / _FILE
        with reading(path):
            return _SessionPredictor(_open(path))


class _SessionPredictor:
    floats: Datatype = "FP32"

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs = session.get_inputs()
        self._outputs = [output.name for output in session.get_outputs()]
        unknown = [f"{put.name} is {put.type}" for put in self._inputs if put.type not in _NUMPY]
        if unknown:
            raise InvalidInputError("This ONNX model takes what rows cannot hold.", unknown)
        first = self._inputs[0].shape if self._inputs else []
        self._size = first[0] if first and isinstance(first[0], int) else 0

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        return predict_in_pieces(self._predict, stack(rows), len(rows), self._size)

    def _predict(self, stacked: Stacked) -> dict[str, Any]:
        results = self._session.run(None, {put.name: self._column(put, stacked) for put in self._inputs})
        return dict(zip(self._outputs, results, strict=True))

    def _column(self, put: Any, stacked: Stacked) -> Any:
        if isinstance(stacked, dict):
            if put.name not in stacked:
                raise PredictionError(f"The rows lack the field {put.name!r}, which the model takes.")
            column = stacked[put.name]
        elif len(self._inputs) == 1:
            column = stacked
        else:
            names = ", ".join(each.name for each in self._inputs)
            raise PredictionError(f"The model takes {len(self._inputs)} fields; give dicts with {names}.")
        if len(put.shape) == column.ndim + 1:
            column = column[..., None]  # a column of a table, which many exporters make two-dimensional
        return column.astype(_NUMPY[put.type], copy=False)


def _open(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    # Threads that spin while they wait would take the cores from other replicas and from the server.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # errors are raised as well
    # From bytes, a model cannot name files beside it.
    return onnxruntime.InferenceSession(path.read_bytes(), options, providers=_providers())


def _providers() -> list[str]:
    available = onnxruntime.get_available_providers()
    return [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in available]


def _copy(source: Path, path: Path) -> None:
    if not source.is_file():
        raise InvalidInputError(f"There is no file {source}.")
    try:
        import onnx  # noqa: PLC0415 - only models whose weights lie in other files need it
    except ImportError:
        shutil.copyfile(source, path)
        return
    try:
        onnx.save(onnx.load(str(source)), str(path))
    except Exception as error:
        raise InvalidInputError(f"{source} is no ONNX model that can be kept in one file: {error}") from error
