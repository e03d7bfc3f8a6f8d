"""Loads models with an optimizer for all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from cargobike.compat.horovod._keras.compression import Compression
from cargobike.compat.horovod._keras.optimizer import DistributedOptimizer
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError


@formerly("horovod.keras.load_model")
def load_model(
    filepath: Any,
    custom_optimizers: Sequence[type] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:
    """Load a model whose optimizer, with its state, applies the gradients of all ranks.

    Args:
        filepath: A file of Keras, `.keras` or `.h5`.
        custom_optimizers: Optimizers of your own that a model may have.
        custom_objects: What else of your own it may have, by name.
        compression: What gradients become on their way.
        legacy_opts: Whether it was trained with `tf.keras.optimizers.legacy`, which Keras 3 cannot load.

    Raises:
        ValueError: If there is no such file, or it needs optimizers that Keras 3 does not have.
    """
    if legacy_opts:
        raise InvalidInputError(
            "Keras 3 has no keras.optimizers.legacy: load the model with compile=False, and compile it anew with "
            "hvd.DistributedOptimizer(keras.optimizers.Adam(...))."
        )
    known = {kind.__name__: kind for kind in custom_optimizers or ()}
    model = keras.models.load_model(filepath, custom_objects={**known, **(custom_objects or {})})
    if getattr(model, "optimizer", None) is not None:
        model.optimizer = DistributedOptimizer(model.optimizer, compression=compression)
    return model
