"""Readers as data sets of TensorFlow 2."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import numpy as np
import tensorflow as tf

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.errors import DecodeFieldError
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField
from cargobike.core.errors import InvalidInputError

_OTHER_TYPES: Final[dict[Any, Any]] = {
    np.uint16: tf.int32,
    np.uint32: tf.int64,
    np.str_: tf.string,
    np.bytes_: tf.string,
    np.datetime64: tf.int64,
    Decimal: tf.string,
}


def make_petastorm_dataset(reader: Any) -> Any:
    """Return a `tf.data.Dataset` of a reader's rows, as namedtuples; of windows, as dicts from step to namedtuple.

    A second pass has the reader begin anew; `num_epochs` of the reader is the quicker way.
    """
    notice("petastorm.tf_utils.make_petastorm_dataset")
    schema: Unischema = reader.schema
    if reader.ngram is None:
        row = schema._get_namedtuple()
        names = list(schema.fields)
        signature: Any = row(*(_spec(field, reader.batched_output) for field in schema.fields.values()))

        def rows() -> Iterator[Any]:
            for given in _pass(reader):
                yield row(*(_known(name, getattr(given, name)) for name in names))

        return tf.data.Dataset.from_generator(rows, output_signature=signature)
    views = {step: reader.ngram.get_schema_at_timestep(schema, step) for step in sorted(reader.ngram.fields)}
    signature = {
        step: view._get_namedtuple()(*(_spec(field, False) for field in view.fields.values()))
        for step, view in views.items()
    }

    def windows() -> Iterator[Any]:
        for window in _pass(reader):
            yield {
                step: view._get_namedtuple()(*(_known(name, getattr(window[step], name)) for name in view.fields))
                for step, view in views.items()
            }

    return tf.data.Dataset.from_generator(windows, output_signature=signature)


def tf_tensors(reader: Any, shuffling_queue_capacity: int = 0, min_after_dequeue: int = 0) -> Any:
    """Refuse: it made tensors for a session of TensorFlow 1.

    Raises:
        InvalidInputError: Always; says what to write instead.
    """
    raise InvalidInputError(
        "tf_tensors makes tensors for a session of TensorFlow 1, which no current TensorFlow has. Write instead:\n"
        "    for row in make_petastorm_dataset(reader).shuffle(capacity): …"
    )


def _pass(reader: Any) -> Iterator[Any]:
    if reader.last_row_consumed:
        reader.reset()
    yield from reader


def _spec(field: UnischemaField, batched: bool) -> Any:
    dtype = _OTHER_TYPES.get(field.numpy_dtype)
    if dtype is None:
        try:
            dtype = tf.as_dtype(field.numpy_dtype)
        except TypeError:
            raise InvalidInputError(
                f"Unknown mapping of numpy {field.numpy_dtype} to tensorflow dtype, of field {field.name!r}."
            ) from None
    shape = (None, *field.shape) if batched else tuple(field.shape)
    return tf.TensorSpec(shape, dtype, name=field.name)


def _known(name: str, value: Any) -> Any:
    """Return a value in a type that TensorFlow has."""
    if value is None:
        raise DecodeFieldError(
            f"Encountered {name!r}=None. Tensorflow does not support None values as a tensor. Leave such rows out by a "
            "predicate, or fill them in a TransformSpec."
        )
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, np.datetime64) or (isinstance(value, np.ndarray) and value.dtype.kind == "M"):
        return np.asarray(value).astype("M8[ns]").astype(np.int64)
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return [str(each.normalize()) if isinstance(each, Decimal) else each for each in value]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.type in (np.uint16, np.uint32):
        return value.astype(np.int32 if value.dtype == np.uint16 else np.int64)
    return value
