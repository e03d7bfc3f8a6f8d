"""Requests of one version as columns: typed by its signature, as JSON text where that does not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from cargobike.core.signatures import NUMPY_NAMES, Datatype, Field, Signature
from cargobike.serving.inference_log.messages import Requests
from cargobike.serving.inference_log.sink import Entry
from cargobike.serving.inference_log.unpacking import Figures, Layout, figures_of, values_of

INPUT: Final = "input"
OUTPUT: Final = "output"
SHAPE: Final = b"shape"
"""In the metadata of a column of lists: the shape of a value, as JSON; the list has its elements in C order."""

HEAD: Final = (
    pa.field("request_id", pa.string()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
    pa.field("latency_ms", pa.float32()),
    pa.field("model", pa.string()),
    pa.field("version", pa.int32()),
    pa.field("status", pa.int16()),
    pa.field("row", pa.int32()),
    pa.field(INPUT, pa.string()),
    pa.field(OUTPUT, pa.string()),
)
"""The columns of every file; `input` and `output` hold JSON of what no typed column can hold, and are mostly null."""

_ELEMENTS_AT_ONCE: Final = 1 << 17
_UNFIT: Final = (pa.ArrowException, TypeError, ValueError, KeyError, OverflowError)
_TYPES: Final[dict[Datatype, Any]] = {
    **{name: pa.from_numpy_dtype(np.dtype(other)) for name, other in NUMPY_NAMES.items() if name != "BYTES"},
    "FP16": pa.float32(),
    "BYTES": pa.string(),
}


class Columns:
    """How the requests of one version become columns.

    Attributes:
        schema: The columns.
        rows_at_once: How many rows are converted in one go, so that it takes little memory.
        row_bytes: About how much memory a row and its answer take before they are converted.
        described: The signature as JSON, for those who read messages without it.
    """

    def __init__(self, model: str, version: int, signature: Signature | None, redact: Sequence[str] = ()) -> None:
        self._model = model
        self._version = version
        self._inputs = _Side(INPUT, signature.inputs if signature else (), frozenset(redact))
        self._outputs = _Side(OUTPUT, signature.outputs if signature else (), frozenset(redact))
        self.described = msgspec.json.encode(signature)
        self.schema = pa.schema([*HEAD, *self._inputs.columns, *self._outputs.columns])
        elements = self._inputs.elements + self._outputs.elements
        self.rows_at_once = max(1, _ELEMENTS_AT_ONCE // (elements + 16))
        self.row_bytes = 400 + 32 * elements

    def redacted(self, rows: Sequence[Any] | None, answers: Sequence[Any] | None) -> tuple[Any, Any]:
        """Return rows and answers without what is redacted, for messages that have no columns."""
        return (
            None if rows is None else [self._inputs.visible(row) for row in rows],
            None if answers is None else [self._outputs.visible(answer) for answer in answers],
        )

    def batch(self, entries: Sequence[Entry]) -> pa.RecordBatch:
        """Return requests as columns, one row for each row of a request; one without rows has a single row."""
        ids, ats, latencies, _, statuses, asked, answered = zip(*entries, strict=True)
        rows = [row for some in asked for row in some or (None,)]
        answers = [
            answer
            for some, got in zip(asked, answered, strict=True)
            for answer in (got if got and len(got) == len(some or (None,)) else repeat(None, len(some or (None,))))
        ]
        counts = np.fromiter((len(some or ()) for some in asked), np.int64, len(asked))
        figures = Figures(
            pa.array(ids, pa.string()), np.array(ats), np.array(latencies), np.array(statuses, np.int16), counts
        )
        return self._assembled(figures, self._inputs.arrays(rows), self._outputs.arrays(answers))

    def batch_of(self, requests: Requests) -> pa.RecordBatch:
        """Return packed requests as columns, as `batch` does."""
        figures = figures_of(requests)
        count = int(np.maximum(figures.counts, 1).sum())
        inputs = self._inputs.unpacked(requests.rows, count)
        return self._assembled(figures, inputs, self._outputs.unpacked(requests.answers, count))

    def _assembled(self, figures: Figures, inputs: list[pa.Array], outputs: list[pa.Array]) -> pa.RecordBatch:
        count = len(figures.ids)
        head = [
            figures.ids,
            _array(np.rint(figures.ats * 1e6).astype(np.int64), HEAD[1].type),
            _array((figures.latencies * 1e3).astype(np.float32), pa.float32()),
            _texts(self._model, count),
            _array(np.full(count, self._version, np.int32), pa.int32()),
            _array(figures.statuses, pa.int16()),
        ]
        repeats = np.maximum(figures.counts, 1)
        has_none = np.repeat(figures.counts == 0, repeats)
        numbers = np.arange(len(has_none)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        if len(has_none) > count:
            requests = _array(np.repeat(np.arange(count), repeats), pa.int64())
            head = [column.take(requests) for column in head]
        input_text, *input_columns = inputs
        output_text, *output_columns = outputs
        row_numbers = _array(numbers.astype(np.int32), pa.int32(), ~has_none)
        arrays = [*head, row_numbers, input_text, output_text, *input_columns, *output_columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class _Side:
    """The input or the output of a model."""

    def __init__(self, name: str, fields: Sequence[Field], redact: frozenset[str]) -> None:
        self._fields = tuple(fields)
        self._redact = redact
        self._is_bare = len(self._fields) == 1
        self._hides_all = name in redact
        self._hides_bare = self._hides_all or any(field.name in redact for field in fields)
        self.columns = [_column(f"{name}.{field.name}", field) for field in fields]
        self.elements = sum(math.prod(abs(size) for size in field.shape) for field in fields) or 16
        self._converters = [_converter(field, column.type) for field, column in zip(fields, self.columns, strict=True)]
        self._layout = Layout.of(fields)

    def unpacked(self, packed: bytes, count: int) -> list[pa.Array]:
        """Return what `arrays` returns for packed values."""
        elements = self._layout.read(packed, count) if self._layout is not None else None
        if elements is None:
            return self.arrays(values_of(packed, count))
        arrays = [pa.nulls(count, pa.string())]
        for field, column, numbers in zip(self._fields, self.columns, elements, strict=True):
            if field.name in self._redact:
                arrays.append(pa.nulls(count, column.type))
                continue
            kind = column.type.value_type if field.shape else column.type
            with np.errstate(over="ignore"):
                flat = _array(numbers.astype(np.float64 if kind == pa.float64() else np.float32), kind)
            arrays.append(pa.FixedSizeListArray.from_arrays(flat, type=column.type) if field.shape else flat)
        return arrays

    def arrays(self, values: Sequence[Any]) -> list[pa.Array]:
        """Return the column of JSON texts, and those of the fields."""
        if not self._fields:
            return [pa.array([self._text(value) for value in values], pa.string())]
        try:
            return [pa.nulls(len(values), pa.string()), *self._typed(values)]
        except _UNFIT:
            fits = [self._fits(value) for value in values]
        texts = [None if fit else self._text(value) for value, fit in zip(values, fits, strict=True)]
        typed = self._typed([value if fit else None for value, fit in zip(values, fits, strict=True)])
        return [pa.array(texts, pa.string()), *typed]

    def _typed(self, values: Sequence[Any]) -> list[pa.Array]:
        arrays = []
        for field, column, convert in zip(self._fields, self.columns, self._converters, strict=True):
            if field.name in self._redact:
                arrays.append(pa.nulls(len(values), column.type))
            elif self._is_bare:
                arrays.append(convert(values))
            else:
                arrays.append(convert([None if value is None else _of(value, field) for value in values]))
        return arrays

    def _fits(self, value: Any) -> bool:
        try:
            self._typed([value])
        except _UNFIT:
            return False
        return True

    def visible(self, value: Any) -> Any:
        """Return a value without what is redacted; `None` if nothing is left."""
        if self._hides_all or (self._hides_bare and not isinstance(value, dict)):
            return None
        return _without(value, self._redact) if self._redact else value

    def _text(self, value: Any) -> str | None:
        value = self.visible(value)
        return None if value is None else msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")


def _array(values: np.ndarray[Any, Any], kind: Any, is_there: np.ndarray[Any, Any] | None = None) -> pa.Array:
    """Return numbers of the right width as they lie in memory; `pa.array` would load pandas first, to ask it."""
    bits = None
    if is_there is not None and not is_there.all():
        bits = pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(kind, values.size, [bits, pa.py_buffer(np.ascontiguousarray(values))])


def _texts(text: str, count: int) -> pa.Array:
    """Return a text so many times."""
    data = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * len(data)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data * count)])


def _of(value: Any, field: Field) -> Any:
    if not isinstance(value, dict):
        raise TypeError("a row of several fields is a dict")
    return value.get(field.name)


def _without(value: Any, names: frozenset[str]) -> Any:
    """Return a value without what dicts in it have under some names, at any depth."""
    if isinstance(value, dict):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    if isinstance(value, list | tuple):
        return [_without(item, names) for item in value]
    return value


def _column(name: str, field: Field) -> pa.Field:
    element = _TYPES[field.datatype]
    if not field.shape:
        return pa.field(name, element)
    if -1 in field.shape:
        for _ in field.shape:
            element = pa.list_(element)
        return pa.field(name, element)
    kind = pa.list_(element, math.prod(field.shape))
    return pa.field(name, kind, metadata={SHAPE: msgspec.json.encode(field.shape)})


def _converter(field: Field, kind: Any) -> Callable[[Sequence[Any]], pa.Array]:
    if len(field.shape) < 2 or -1 in field.shape or field.datatype == "BYTES":
        flat = len(field.shape) < 2 or -1 in field.shape
        return lambda values: pa.array(values if flat else [_flat(value) for value in values], kind)
    return lambda values: _tensors(values, field.shape, kind)


def _flat(value: Any) -> Any:
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = [item for part in value for item in part]
    return value


def _tensors(values: Sequence[Any], shape: tuple[int, ...], kind: Any) -> pa.Array:
    """Return nested lists as lists of all elements; NumPy flattens them ten times faster than Python."""
    is_there = np.array([value is not None for value in values], dtype=bool)
    elements = np.zeros((len(values), *shape), dtype=kind.value_type.to_pandas_dtype())
    if is_there.any():
        given = np.asarray([value for value in values if value is not None])
        if given.dtype.kind not in "biuf" or given.shape[1:] != shape:
            raise TypeError("the elements are not numbers, or have another shape")
        elements[is_there] = given
    array = pa.FixedSizeListArray.from_arrays(pa.array(elements.reshape(-1)), kind.list_size)
    return (
        array
        if is_there.all()
        else pa.FixedSizeListArray.from_arrays(array.values, kind.list_size, mask=pa.array(~is_there))
    )
