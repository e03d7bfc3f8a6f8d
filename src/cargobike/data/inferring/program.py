"""The program that predicts on a worker: it reads a piece of the source, calls predict, and writes what comes out."""

from __future__ import annotations

import importlib
import inspect
import os
import random
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import cloudpickle
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.package import PACKAGE_FOLDER
from cargobike.core.values.information import to_text
from cargobike.data import casting
from cargobike.data.sources.opening import open_again
from cargobike.data.sources.source import Source, SourceSpec
from cargobike.data.tensors import tensor_of
from cargobike.workers import host
from cargobike.workers.program import Seat
from cargobike.workers.wire.messages import Assign, Ended

MODULE = "cargobike.data.inferring.program"
_MOST_ALONE = 4096
_LONGEST = 60_000


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What workers need to know; it travels by the engine's own channel.

    Attributes:
        predict: The function or class, pickled.
        spec: What opens the source.
        folder: Where results go.
        form: What a batch is: `pandas` or `arrow`.
        batch_size: Most rows in a batch.
        output: The announced columns, as a serialized Arrow schema; empty if they are as they come.
        sys_path: The driver's `sys.path`, so that modules are found by the same names.
        launch_dir: The driver's working directory.
    """

    predict: bytes
    spec: SourceSpec
    folder: str
    form: str
    batch_size: int
    output: bytes
    sys_path: list[str]
    launch_dir: str


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Groups of the source that are predicted together, and the number of their first row in the source."""

    groups: list[int]
    first_row: int


class Predicted(msgspec.Struct, frozen=True, array_like=True):
    """How that went: how many rows were written, or what the user has to read."""

    rows: int = 0
    error: str = ""


decode_assign = msgspec.msgpack.Decoder(Assign[Piece]).decode


class PredictProgram:
    """Predicts pieces; the source is opened and an object of a class is made once in each process."""

    def __init__(self, payload: bytes) -> None:
        self._job = msgspec.msgpack.decode(payload, type=Job)
        self._source: Source | None = None
        self._predict: Callable[..., Any] | None = None

    @property
    def preload(self) -> Sequence[str]:
        """Libraries that every piece needs."""
        return ["pyarrow.parquet", *(["pandas"] if self._job.form == "pandas" else [])]

    def prepare(self) -> None:
        """Find modules as the driver does."""
        own = set(self._job.sys_path)
        sys.path[:] = [*self._job.sys_path, *(path for path in sys.path if path not in own)]

    def rehearse(self, seat: Seat) -> None:
        """Nothing takes time."""

    def understudy(self) -> None:
        """There is none: few workers run this."""

    def leave(self, seat: Seat) -> None:
        """Nothing is left."""

    def run(self, seat: Seat, packet: bytes) -> Ended[Predicted]:
        """Predict a piece, and say how that went."""
        assign = decode_assign(packet)
        os.chdir(self._job.launch_dir)
        predicted = self.predict(assign.task, assign.body)
        return Ended(assign.task, assign.attempt, predicted, failed=bool(predicted.error))

    def predict(self, number: int, piece: Piece) -> Predicted:
        """Write what is predicted for a piece to the file with its number, at once or not at all."""
        try:
            source = self._source = self._source or open_again(self._job.spec)
            predict = self._predict = self._predict or self._make()
            pieces = list(self._tables(source, predict, piece))
        except UserError as error:
            return Predicted(error=to_text(str(error)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the user has to read it
            return Predicted(error=to_text(_without_our_frames(error)))
        table = pa.concat_tables(pieces, promote_options="permissive")
        path = part_of(Path(self._job.folder), number)
        building = path.with_name(f".{path.name}.{os.getpid()}")
        pq.write_table(table, building)
        os.rename(building, path)
        return Predicted(table.num_rows)

    def _make(self) -> Callable[..., Any]:
        random.seed()  # all workers were forked with the same state
        given = cloudpickle.loads(self._job.predict)
        return cast("Callable[..., Any]", given() if inspect.isclass(given) else given)

    def _tables(self, source: Source, predict: Callable[..., Any], piece: Piece) -> Any:
        first = piece.first_row
        announced = pa.ipc.read_schema(pa.py_buffer(self._job.output)) if self._job.output else None
        for group in piece.groups:
            rows = source.read(group).combine_chunks()
            for start in range(0, rows.num_rows, self._job.batch_size):
                batch = rows.slice(start, self._job.batch_size)
                yield _joined(batch, self._returned(predict, batch, first), announced, first)
                first += batch.num_rows

    def _returned(self, predict: Callable[..., Any], batch: pa.Table, first: int) -> dict[str, Any]:
        try:
            returned = predict(self._formed(batch))
        except (Exception, SystemExit) as error:
            raise UserError(self._blame(predict, batch, first, error)) from error
        try:
            return casting.as_columns(returned, batch.num_rows)
        except ValueError as error:
            raise UserError(f"{error}. That was for rows {first:,} to {first + batch.num_rows - 1:,}.") from error

    def _formed(self, batch: pa.Table) -> Any:
        return as_frame(batch) if self._job.form == "pandas" else batch.to_batches()[0]

    def _blame(self, predict: Callable[..., Any], batch: pa.Table, first: int, error: BaseException) -> str:
        """Find the row at which predict fails, by calling it for each row of the batch alone."""
        for number in range(min(batch.num_rows, _MOST_ALONE)):
            row = batch.slice(number, 1)
            try:
                predict(self._formed(row))
            except (Exception, SystemExit) as again:  # noqa: BLE001 - the user's own
                if type(again) is type(error):
                    shown = str(row.to_pylist()[0])[:500]
                    return f"predict failed at row {first + number:,}, which is {shown}\n{_without_our_frames(again)}"
        rows = f"rows {first:,} to {first + batch.num_rows - 1:,}"
        return f"predict failed at {rows} together, at none of them alone\n{_without_our_frames(error)}"


class UserError(Exception):
    """What is to be told to the user as it is."""


def part_of(folder: Path, number: int) -> Path:
    """Return the file that holds the result of a piece."""
    return folder / f"part-{number:08d}.parquet"


def as_frame(batch: pa.Table) -> Any:
    """Return rows as a pandas DataFrame; tensors are arrays in it."""
    frame = batch.to_pandas()
    for field in batch.schema:
        tensor = tensor_of(field)
        if tensor is not None:
            dtype = np.dtype(tensor.dtype).newbyteorder("<")
            frame[field.name] = [
                None if value is None else np.frombuffer(value, dtype).reshape(tensor.shape)
                for value in frame[field.name]
            ]
    return frame


def _joined(batch: pa.Table, returned: dict[str, Any], announced: pa.Schema | None, first: int) -> pa.Table:
    """Return rows with what was predicted for them beside it."""
    if announced is None:
        announced = pa.schema([(name, casting.type_of(values)) for name, values in returned.items()])
    names = announced.names
    is_unnamed = len(names) == 1 and list(returned) == [casting.UNNAMED]
    columns = dict(zip(names, returned.values(), strict=True)) if is_unnamed else returned
    missing = [name for name in names if name not in columns]
    if missing:
        raise UserError(f"predict returned {', '.join(columns)}, but {', '.join(missing)} was announced.")
    taken = [name for name in names if name in batch.schema.names]
    if taken:
        raise UserError(
            f"predict returns columns that the data has already: {', '.join(taken)}. Return a dict with other names."
        )
    rows = batch.combine_chunks().to_batches()[0]
    for field in announced:
        try:
            values = casting.fitted(columns[field.name], field.type, field.name, rows, (-1, first))
        except ValueError as error:
            raise UserError(str(error)) from error
        batch = batch.append_column(field, values)
    return batch


def _without_our_frames(error: BaseException) -> str:
    """Return the user's own traceback."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE_FOLDER + os.sep):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace, chain=False)).rstrip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}\n[…]\n{text[-_LONGEST // 2 :]}"


def main(control_fd: int) -> None:
    """Run the host of workers that predict."""
    importlib.import_module("pyarrow")
    host.main(control_fd, PredictProgram)
