"""Layers that each rank keeps for itself."""

from __future__ import annotations

from typing import Any

import keras

from cargobike.core.errors import InvalidInputError


def variables_of(layers: Any) -> list[Any]:
    """Return the variables of a layer or several.

    Raises:
        ValueError: If something else is given.
    """
    layers = [] if layers is None else [layers] if isinstance(layers, keras.layers.Layer) else list(layers)
    wrong = [layer for layer in layers if not isinstance(layer, keras.layers.Layer)]
    if wrong:
        raise InvalidInputError(f"local_layers takes layers of Keras, not {wrong[0]!r}.")
    return [variable for layer in layers for variable in layer.trainable_weights]
