"""A loader as a `tf.data.Dataset`: whole batches, with their types and shapes, read ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from cargobike.core.errors import InvalidInputError
from cargobike.data.loading.frameworks.batches import Batches


def as_dataset(loader: Batches, arrange: Callable[[Any], Any] = lambda batch: batch) -> Any:
    """Return a dataset each of whose passes is the next epoch of a loader.

    TensorFlow begins passes that it never ends, and takes batches before it needs them. So a pass that was not
    completed is begun anew by the next one, and counts for nothing.

    Args:
        loader: What to read; with `to="numpy"`.
        arrange: What to make of each batch.

    Raises:
        InvalidInputError: If the loader makes something else than NumPy arrays.
    """
    options = loader.options
    if options.to != "numpy":
        raise InvalidInputError(f"to={options.to!r} was given; a tf.data.Dataset is made of a loader with to='numpy'.")
    rows = None if options.last == "keep" else options.batch_size
    if options.transform is None:
        described: Any = {
            name: tf.TensorSpec((rows, *shape), _type_of(dtype), name=name)
            for name, (dtype, shape) in loader.batch_spec().items()
        }
        signature = arrange(described)
    else:
        first = arrange(_first_batch(loader))
        signature = tf.nest.map_structure(
            lambda array: tf.TensorSpec((None, *np.shape(array)[1:]), _type_of(np.asarray(array).dtype)), first
        )
    passes = _Passes(loader, arrange)
    dataset = tf.data.Dataset.from_generator(passes.begin, output_signature=signature)
    return dataset.apply(tf.data.experimental.assert_cardinality(len(loader))).prefetch(2)


class _Passes:
    """Passes over a loader, of which only those count that come to their end."""

    def __init__(self, loader: Batches, arrange: Callable[[Any], Any]) -> None:
        self._loader = loader
        self._arrange = arrange
        self._unfinished: dict[str, Any] | None = None

    def begin(self) -> Iterator[Any]:
        if self._unfinished is not None:
            self._loader.load_state_dict(self._unfinished)
        self._unfinished = self._loader.state_dict()
        batches = iter(self._loader)
        epoch = self._loader.epoch
        for batch in batches:
            if self._loader.epoch != epoch:
                self._unfinished = None
            yield self._arrange(batch)


def _first_batch(loader: Batches) -> Any:
    state = loader.state_dict()
    batch = next(iter(loader))
    loader.load_state_dict(state)
    return batch


def _type_of(dtype: np.dtype[Any]) -> Any:
    return tf.string if dtype.kind in "OUS" else tf.as_dtype(dtype)
