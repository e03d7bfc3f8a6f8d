"""Batch inference without Spark: over any source, on workers of this machine, into a table."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import cloudpickle
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import Resources
from cargobike.core.registering.steps import own_step
from cargobike.data.feeding import open_given
from cargobike.data.inferring.driving import Driver
from cargobike.data.inferring.keeping import Results, digest_of
from cargobike.data.inferring.program import MODULE, Job, Piece, PredictProgram
from cargobike.data.inferring.progress import ProgressLine
from cargobike.data.inferring.types import announced
from cargobike.data.kind import DATA
from cargobike.data.sources.memory import MemorySource
from cargobike.data.sources.opening import open_again, origin_of
from cargobike.data.sources.parquet import parquet_at
from cargobike.data.sources.source import Source
from cargobike.data.tables.addresses import writable_address
from cargobike.data.tables.recovering import written_by
from cargobike.data.tables.table import Table
from cargobike.data.tables.writing import write_to
from cargobike.engines.local.boot import Boot
from cargobike.engines.local.gpus import detect_gpus
from cargobike.engines.registry import resolve_engine
from cargobike.store.files import project
from cargobike.store.history.environment import without_credentials

PIECE_ROWS: Final = 1 << 16
PIECE_BYTES: Final = 8 << 20
BATCH_ROWS: Final = 4096
_GIVEN: Final = "given.parquet"


@own_step("experiment.inference", recover="cargobike.data.inferring.front:recover_inference")
def infer_locally(
    predict: Callable[..., Any] | type,
    given: object,
    *,
    form: str,
    output: str | None,
    batch_size: int | None,
    output_to: str | os.PathLike[str] | None,
    workers: int | None,
    timeout_s: float | None,
    quiet: bool,
) -> Table:
    """Predict for every row of a source, and return the table that holds rows and predictions."""
    source = open_given(given)
    if not source.num_rows:
        raise InvalidInputError(f"{without_credentials(source.name)} has no rows.")
    pickled = _pickle(predict)
    types = announced(output) if output is not None else None
    if types is not None and (taken := [name for name in types.names if name in source.schema.names]):
        raise InvalidInputError(f"output={output!r} names columns that the data has already: {', '.join(taken)}.")
    destination = os.fspath(output_to) if output_to is not None else _name_of(predict)
    root = project.prepare().root.absolute() / DATA.folder
    fingerprint = _content_of(source)
    size = batch_size or BATCH_ROWS
    target = digest_of(destination, fingerprint)
    key = digest_of(pickled, _module_of(predict), form, str(size), output or "")
    with Results(root, target, key) as results:
        opened = _reopenable(source, results.folder)
        pieces = cut(opened)
        job = Job(
            predict=pickled,
            spec=opened.spec(),
            folder=str(results.folder),
            form=form,
            batch_size=size,
            output=b"" if types is None else types.serialize().to_pybytes(),
            sys_path=[os.path.abspath(path) for path in sys.path],
            launch_dir=os.getcwd(),
        )
        rows = {number: sum(opened.groups[group].rows for group in piece.groups) for number, piece in pieces.items()}
        done = {number: found for number, found in results.finished(pieces).items() if found == rows[number]}
        with ProgressLine(source.num_rows, sum(done.values()), quiet=quiet) as line:
            _predict_all({n: piece for n, piece in pieces.items() if n not in done}, job, workers, timeout_s, line)
            line.say("writing the table")
            schema = results.schema(pieces, opened.schema.names)
            _refuse_untyped(schema)
            rows_read = pa.RecordBatchReader.from_batches(schema, results.batches(pieces, schema))
            table = write_to(writable_address(destination), rows_read, origin=origin_of(source))
        results.clear()
    if table.num_rows != source.num_rows:
        raise PredictionError(f"{source.num_rows:,} rows were given, and {table.num_rows:,} are in {table!r}.")
    return table


def recover_inference(token: str, project: ProjectFolder, predict: Any, *_: Any, **said: Any) -> Table | None:
    """Return the table that a step of a pipeline wrote before its process was killed."""
    destination = said.get("output_to")
    return written_by(token, project, destination if destination is not None else _name_of(predict))


def cut(source: Source) -> dict[int, Piece]:
    """Cut a source into pieces of some groups each: what is finished at once, and not computed again."""
    pieces: dict[int, Piece] = {}
    groups: list[int] = []
    first = rows = size = 0
    for number, group in enumerate(source.groups):
        groups.append(number)
        rows, size = rows + group.rows, size + group.size_bytes
        if rows >= PIECE_ROWS or size >= PIECE_BYTES or number == len(source.groups) - 1:
            pieces[len(pieces)] = Piece(groups, first)
            groups, first, rows, size = [], first + rows, 0, 0
    return pieces


def _predict_all(
    pieces: dict[int, Piece], job: Job, workers: int | None, timeout_s: float | None, line: ProgressLine
) -> None:
    if not pieces:
        return
    if workers == 0:
        program = PredictProgram(msgspec.msgpack.encode(job))
        for number, piece in pieces.items():
            predicted = program.predict(number, piece)
            if predicted.error:
                raise PredictionError(predicted.error)
            line.done(predicted.rows)
        return
    gpus = len(detect_gpus())
    wanted = min(workers or gpus or len(os.sched_getaffinity(0)), len(pieces))
    with Boot(MODULE) as boot, resolve_engine("local", boot) as engine:
        Driver(
            engine=engine,
            folder=Path(job.folder),
            payload=msgspec.msgpack.encode(job),
            workers=wanted,
            resources=Resources(gpus=min(1.0, gpus / wanted)),
            timeout_s=timeout_s,
            on_done=lambda _, rows: line.done(rows),
            on_output=line.pass_on,
        ).run(pieces)


def _pickle(predict: Callable[..., Any]) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(predict)
    except Exception as error:
        raise InvalidInputError(
            f"predict cannot be sent to workers: {error}. Give a class that makes such things (locks, open files, "
            "connections, models on a GPU) in its __init__."
        ) from error
    return pickled


def _module_of(predict: Callable[..., Any]) -> str:
    """Return the text of the module of predict, which travels by name: what another text computed is not kept."""
    owner = predict if inspect.isclass(predict) or inspect.isfunction(predict) else type(predict)
    file = getattr(sys.modules.get(owner.__module__), "__file__", None) or ""
    try:
        return "" if "site-packages" in file else Path(file).read_text(errors="replace")
    except OSError:
        return ""


def _name_of(predict: Callable[..., Any]) -> str:
    """Return what the table is called if it was not said."""
    name = re.sub(r"[^a-z0-9]+", "-", getattr(predict, "__name__", type(predict).__name__).lower()).strip("-")
    return f"{name or 'predict'}-predictions"


def _content_of(source: Source) -> str:
    """Return what tells this content from any other; of tables in memory all of it is looked at."""
    if not isinstance(source, MemorySource):
        return source.fingerprint
    digest = hashlib.blake2b(str(source.schema).encode(), digest_size=16)
    for group in range(len(source.groups)):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, source.schema) as writer:
            writer.write_table(source.read(group).combine_chunks())
        digest.update(sink.getvalue())
    return digest.hexdigest()


def _reopenable(source: Source, folder: Path) -> Source:
    """Return a source that workers can open: one that is only in memory is written down for them."""
    if not isinstance(source, MemorySource):
        return open_again(source.spec())
    path = folder / _GIVEN
    building = folder / f".{_GIVEN}"
    if not path.exists():
        with pq.ParquetWriter(building, source.schema) as writer:
            for group in range(len(source.groups)):
                writer.write_table(source.read(group), row_group_size=BATCH_ROWS * 2)
        os.rename(building, path)
    return parquet_at([str(path)])


def _refuse_untyped(schema: pa.Schema) -> None:
    empty = [field.name for field in schema if pa.types.is_null(field.type)]
    if empty:
        raise InvalidInputError(
            f'predict returned only None for {", ".join(empty)}, which has no type; say it: output="{empty[0]} double".'
        )
