"""Batch inference over a Spark DataFrame: every row gets its prediction, none is lost, and the order stays."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa

from cargobike.core.errors import InvalidInputError

_SAMPLE_ROWS = 16


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
    _send_own_modules(predict)
    columns = list(data.columns)
    task = _Task(predict, form, batch_size)
    names_and_types = output or _find_out(task, data)
    taken = [name for name in _names_in(names_and_types) if name in columns]
    if taken:
        raise InvalidInputError(
            f"predict returns columns that the data has already: {', '.join(taken)}. Return a dict with other names."
        )
    from pyspark.sql.types import StructType  # noqa: PLC0415 - with a Spark DataFrame it is loaded already

    added = StructType.fromDDL(names_and_types)
    schema = StructType([*data.schema.fields, *added.fields])
    return data.mapInArrow(_Typed(task, [field.name for field in added.fields]), schema)


def _find_out(task: _Task, data: Any) -> str:
    """Have an executor predict for some rows, to learn the columns that come out."""

    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, added in task(batches):
            from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

            fields = from_arrow_schema(added.schema).fields
            text = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in fields)
            yield pa.RecordBatch.from_pydict({"columns": [text]})

    rows = data.limit(_SAMPLE_ROWS).mapInArrow(describe, "columns string").collect()
    if not rows:
        raise InvalidInputError(
            'The data has no rows, so it cannot be found out what predict returns; say it: output="prediction double".'
        )
    return str(rows[0][0])


def _names_in(ddl: str) -> list[str]:
    from pyspark.sql.types import StructType  # noqa: PLC0415

    return [field.name for field in StructType.fromDDL(ddl).fields]


class _Task:
    """Predicts for one partition, batch by batch; an object of a class is made once for all of them."""

    def __init__(self, predict: Any, form: str, batch_size: int | None) -> None:
        self._predict = predict
        self._form = form
        self._batch_size = batch_size

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        predict: Any = self._predict() if inspect.isclass(self._predict) else self._predict
        for whole in batches:
            size = self._batch_size or max(1, whole.num_rows)
            for start in range(0, whole.num_rows, size):
                batch = whole.slice(start, size)
                yield (
                    batch,
                    _as_columns(predict(batch.to_pandas() if self._form == "pandas" else batch), batch.num_rows),
                )


class _Typed:
    """Joins rows and predictions, with the columns that were announced."""

    def __init__(self, task: _Task, names: list[str]) -> None:
        self._task = task
        self._names = names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch, added in self._task(batches):
            missing = [name for name in self._names if name not in added.schema.names]
            if missing:
                raise ValueError(f"predict returned {added.schema.names}, but {missing} was announced")
            arrays = [*batch.columns, *(added.column(name) for name in self._names)]
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *self._names])


def _as_columns(returned: Any, rows: int) -> pa.RecordBatch:
    """Understand what predict returned: numbers, a dict of columns, a table."""
    if isinstance(returned, pa.Table):
        returned = {name: returned.column(name).combine_chunks() for name in returned.schema.names}
    elif isinstance(returned, pa.RecordBatch):
        returned = {name: returned.column(name) for name in returned.schema.names}
    elif hasattr(returned, "columns") and hasattr(returned, "to_dict"):
        returned = {str(name): returned[name] for name in returned.columns}
    elif not isinstance(returned, Mapping):
        returned = {"prediction": returned}
    arrays = {}
    for name, column in returned.items():
        plain = column.detach().cpu().numpy() if hasattr(column, "detach") else column
        if getattr(plain, "ndim", 1) == 2:
            plain = list(plain)
        array = plain if isinstance(plain, pa.Array) else pa.array(plain)
        if len(array) != rows:
            raise ValueError(
                f"predict was given {rows} rows and returned {len(array)} values of {name!r}: one for each"
            )
        arrays[name] = array
    return pa.RecordBatch.from_pydict(arrays)


def _send_own_modules(predict: Any) -> None:
    """Pickle the module of predict by value, unless it is installed: executors have no copy of it."""
    from pyspark import cloudpickle  # noqa: PLC0415

    owner = predict if inspect.isclass(predict) or inspect.isfunction(predict) else type(predict)
    module = sys.modules.get(owner.__module__)
    file = getattr(module, "__file__", None) or ""
    if module is not None and module.__name__ != "__main__" and "site-packages" not in file:
        cloudpickle.register_pickle_by_value(module)
    here = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)
