"""A model without some of its layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.lazy import load


def model_without(make_model: Callable[[], Any], identifier: str | tuple[str, ...]) -> Any:
    """Return a sequential model of Keras without a layer, a group of layers, or all whose names have a prefix.

    Args:
        make_model: Makes the whole model.
        identifier: The name of a layer; a tuple of several names, or of one prefix.

    Raises:
        InvalidInputError: If there is no such layer, or it has to stay. Maggy trained the whole model then.
    """
    model = make_model()
    if not isinstance(model, load("keras:Sequential")):
        raise InvalidInputError(
            f"Layers can be left out of a keras.Sequential, not of a {type(model).__name__}: make the smaller model "
            "yourself, model.add_custom_model_generator(function, name)."
        )
    has_input = model.get_config()["layers"][0]["class_name"] == "InputLayer"
    removable = [layer.name for layer in (model.layers[:-1] if has_input else model.layers[1:-1])]
    gone = _chosen(identifier, removable, [layer.name for layer in model.layers])
    kept = [type(layer).from_config(layer.get_config()) for layer in model.layers if layer.name not in gone]
    first = [load("keras:Input")(batch_shape=model.input_shape)] if has_input else []
    return load("keras:Sequential")([*first, *kept], name=model.name)


def _chosen(identifier: str | tuple[str, ...], removable: list[str], names: list[str]) -> set[str]:
    if not isinstance(identifier, str) and len(identifier) == 1:
        prefix = identifier[0].lower()
        gone = {name for name in removable if name.lower().startswith(prefix)}
        if not gone:
            raise InvalidInputError(f"No layer that may be left out begins with {prefix!r}; there are {removable}.")
        return gone
    wanted = [identifier] if isinstance(identifier, str) else list(identifier)
    mistakes = [
        f"{name!r} is the first or the last layer, which stay"
        if name in names
        else f"there is no layer {name!r}.{nearest(name, removable)}"
        for name in wanted
        if name not in removable
    ]
    if mistakes:
        raise InvalidInputError(f"These layers cannot be left out; the model has {names}:", mistakes)
    return set(wanted)
