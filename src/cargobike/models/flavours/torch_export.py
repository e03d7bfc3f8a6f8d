"""Programs of `torch.export`: no class of the user is needed to run them.

A program names what it calls, and torch reads parts of the file as pickles: a stranger's program can do what a
stranger's pickle can. So loading one counts as running code; for files from elsewhere ONNX is the safer choice.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Final

import torch

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Datatype
from cargobike.models.flavours.answers import named
from cargobike.models.flavours.batches import predict_in_pieces
from cargobike.models.flavours.files import check_archive, reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.pickling import announced
from cargobike.models.flavours.rows import Stacked, stack

_FILE: Final = "model.pt2"


class TorchExportFlavour(Flavour):
    """Keeps a program as a `.pt2` file."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the program, or copy the file that was given."""
        if isinstance(given.model, str | os.PathLike):
            path = Path(given.model)
            if not path.is_file():
                raise InvalidInputError(f"There is no file {path}.")
            shutil.copyfile(path, folder / _FILE)
        elif isinstance(given.model, torch.export.ExportedProgram):
            torch.export.save(given.model, str(folder / _FILE))
        else:
            raise InvalidInputError(
                f"A {type(given.model).__name__} was given; give what torch.export.export returns, or a .pt2 file."
            )
        return Saved(flavour="torch-export", libraries=("torch", "torch.export"), runs_code=True)

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Read the program."""
        path = folder / _FILE
        announced(path, saved)
        with reading(path):
            check_archive(path)
            return _ProgramPredictor(torch.export.load(str(path)))


class _ProgramPredictor:
    floats: Datatype = "FP32"

    def __init__(self, program: Any) -> None:
        wanted = set(program.graph_signature.user_inputs)
        values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.name in wanted}
        self._types = {name: value.dtype for name, value in values.items() if isinstance(value, torch.Tensor)}
        first = next((value for value in values.values() if isinstance(value, torch.Tensor)), None)
        rows = first.shape[0] if first is not None and first.ndim else None
        self._size = rows if isinstance(rows, int) else 0
        self._positional = len(program.call_spec.in_spec.child(0).children())
        self._module = program.module()

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        return predict_in_pieces(self._predict, stack(rows), len(rows), self._size)

    def _predict(self, stacked: Stacked) -> Any:
        columns = self._by_name(stacked)
        tensors = [torch.from_numpy(column).to(self._types[name]) for name, column in columns.items()]
        by_name = dict(zip(list(columns)[self._positional :], tensors[self._positional :], strict=True))
        with torch.inference_mode():
            return named(self._module(*tensors[: self._positional], **by_name))

    def _by_name(self, stacked: Stacked) -> dict[str, Any]:
        names = list(self._types)
        if not isinstance(stacked, dict):
            if len(names) != 1:
                raise PredictionError(f"The program takes {len(names)} fields; give dicts with {', '.join(names)}.")
            return {names[0]: stacked}
        if lacking := [name for name in names if name not in stacked]:
            raise PredictionError(f"The rows lack fields that the program takes: {', '.join(lacking)}.")
        return {name: stacked[name] for name in names}
