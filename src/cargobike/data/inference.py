"""Batch inference over a Spark DataFrame: every row gets its prediction, none is lost, and the order stays."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.data import casting
from cargobike.engines.spark.pythons import python_for_tasks

_SAMPLE_ROWS = (16, 4096)


def infer(
    predict: Callable[..., Any] | type,
    data: Any,
    *,
    form: Literal["pandas", "arrow"] = "pandas",
    output: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Return the DataFrame with what `predict` says about each row; see `experiment.inference`."""
    if not hasattr(data, "mapInArrow"):
        raise InvalidInputError(f"data={type(data).__name__} was given; inference runs over a Spark DataFrame.")
    if not callable(predict):
        raise InvalidInputError(f"predict={predict!r} was given; give a function, or a class whose objects are called.")
    if form not in ("pandas", "arrow"):
        raise InvalidInputError(f"form={form!r} was given; allowed are 'pandas' and 'arrow'.")
    if batch_size is not None and batch_size < 1:
        raise InvalidInputError(f"batch_size={batch_size} was given; a batch has at least one row.")
    if data.isStreaming and output is None:
        raise InvalidInputError(
            "A streaming DataFrame was given, whose rows cannot be tried beforehand; say what predict returns: "
            'output="prediction double".'
        )
    _send_own_modules(predict)
    # With a Spark DataFrame, pyspark is loaded already.
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    task = _Task(predict, form, batch_size)
    added = _announced(output) if output is not None else _find_out(task, data)
    taken = [name for name in added.names if name in data.columns]
    if taken:
        raise InvalidInputError(
            f"predict returns columns that the data has already: {', '.join(taken)}. Return a dict with other names."
        )
    schema = StructType([*data.schema.fields, *added.fields])
    zone = data.sparkSession.conf.get("spark.sql.session.timeZone")
    with python_for_tasks(data.sparkSession.sparkContext):
        return data.mapInArrow(_Typed(task, to_arrow_schema(added, timezone=zone)), schema)


def _announced(output: str) -> Any:
    """Return the columns that were announced, as names and types or as the type of the only one."""
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    text = output if " " in output.strip() or ":" in output else f"prediction {output}"
    try:
        return StructType.fromDDL(text)
    except PySparkException as error:
        raise InvalidInputError(
            f"output={output!r} was given; it says names and types, such as 'label int, score double'. "
            f"Spark answers: {str(error).strip().splitlines()[0]}"
        ) from None


def _find_out(task: _Task, data: Any) -> Any:
    """Have an executor predict for some rows, to learn the columns that come out; for more if all of them are None."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        types: dict[str, pa.DataType] = {}
        for _, columns, _ in task(batches):
            for name, values in columns.items():
                types[name] = casting.common_type(types.get(name, pa.null()), casting.type_of(values))
        if types:
            yield pa.RecordBatch.from_pydict({"schema": [pa.schema(list(types.items())).serialize().to_pybytes()]})

    empty: list[str] = []
    for count in _SAMPLE_ROWS:
        with python_for_tasks(data.sparkSession.sparkContext):
            described = data.limit(count).mapInArrow(describe, "schema binary")
        rows = described.collect()
        if not rows:
            raise InvalidInputError(
                "The data has no rows, so it cannot be found out what predict returns; "
                'say it: output="prediction double".'
            )
        schema = casting.common_schema(pa.ipc.read_schema(pa.py_buffer(row[0])) for row in rows)
        empty = [field.name for field in schema if pa.types.is_null(field.type)]
        if not empty:
            return from_arrow_schema(schema)
    raise InvalidInputError(
        f"predict returned only None for {', '.join(empty)} in the first {_SAMPLE_ROWS[-1]} rows, which have no type; "
        f'say it: output="{empty[0]} double".'
    )


class _Task:
    """Predicts for one partition, batch by batch; an object of a class is made once for all of them."""

    def __init__(self, predict: Any, form: str, batch_size: int | None) -> None:
        self._predict = predict
        self._form = form
        self._batch_size = batch_size

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, dict[str, Any], int]]:
        """Yield each batch, what was predicted for it, and the number of its first row within the partition."""
        predict: Any = self._predict() if inspect.isclass(self._predict) else self._predict
        first = 0
        for whole in batches:
            size = self._batch_size or max(1, whole.num_rows)
            for start in range(0, whole.num_rows, size):
                batch = whole.slice(start, size)
                returned = predict(batch.to_pandas() if self._form == "pandas" else batch)
                yield batch, casting.as_columns(returned, batch.num_rows), first
                first += batch.num_rows


class _Typed:
    """Joins rows and predictions, with the columns that were announced."""

    def __init__(self, task: _Task, announced: pa.Schema) -> None:
        self._task = task
        self._announced = announced

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        names = self._announced.names
        for batch, returned, first in self._task(batches):
            is_unnamed = len(names) == 1 and list(returned) == [casting.UNNAMED]
            columns = dict(zip(names, returned.values(), strict=True)) if is_unnamed else returned
            missing = [name for name in names if name not in columns]
            if missing:
                raise ValueError(f"predict returned {', '.join(columns)}, but {', '.join(missing)} was announced")
            added = [
                casting.fitted(columns[field.name], field.type, field.name, batch, (partition, first))
                for field in self._announced
            ]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], names=[*batch.schema.names, *names])


def _send_own_modules(predict: Any) -> None:
    """Pickle the module of predict by value, unless it is installed: executors have no copy of it."""
    from pyspark import cloudpickle  # noqa: PLC0415

    owner = predict if inspect.isclass(predict) or inspect.isfunction(predict) else type(predict)
    module = sys.modules.get(owner.__module__)
    file = getattr(module, "__file__", None) or ""
    if module is not None and module.__name__ != "__main__" and "site-packages" not in file:
        cloudpickle.register_pickle_by_value(module)
    for own in (sys.modules[__name__], casting):
        cloudpickle.register_pickle_by_value(own)
