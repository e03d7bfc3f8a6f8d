"""Keras optimizers whose gradients go through an exchange with other ranks before they are applied.

The exchange happens once for each change of the weights: where Keras adds up the gradients of several passes
(`gradient_accumulation_steps`), only their mean travels. Clipping comes after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import keras


class Exchange(Protocol):
    """What happens to gradients between ranks."""

    def begin_pass(self, variables: Sequence[Any]) -> None:
        """Get ready: called before each pass with the variables that have gradients."""

    def reduce(self, gradients: list[Any], variables: Sequence[Any]) -> list[Any]:
        """Return the gradients to apply, one for each that is given."""


class Silent:
    """An exchange without anything to do before a pass."""

    def begin_pass(self, variables: Sequence[Any]) -> None:
        """Do nothing."""


def exchanging(optimizer: Any, exchange: Exchange, **changed: Any) -> Any:
    """Return an optimizer like another, with its state, whose gradients go through an exchange.

    Its class is called like the other's, so that models that are saved with it load without us, and makes further ones
    with the same exchange by `from_config`.

    Args:
        optimizer: A Keras optimizer.
        exchange: What its gradients go through.
        changed: Settings of the optimizer that are to be other ones.
    """
    made = _exchanging_class(type(optimizer), exchange).from_config({**optimizer.get_config(), **changed})
    if optimizer.built:
        made.build(optimizer._trainable_variables)
        for own, other in zip(_state(made), _state(optimizer), strict=True):
            own.assign(other)
    return made


def _state(optimizer: Any) -> list[Any]:
    """Return the variables of an optimizer without the sums of passes that are not complete."""
    sums = {id(variable) for variable in getattr(optimizer, "_accumulated_gradients", None) or ()}
    return [variable for variable in optimizer.variables if id(variable) not in sums]


def _exchanging_class(kind: Any, exchange: Exchange) -> Any:
    class Exchanging(kind):
        _exchange = exchange
        _passing: tuple[Any, ...] = ()

        def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> Any:
            variables = tuple(trainable_variables)
            exchange.begin_pass(variables)
            object.__setattr__(self, "_passing", variables)  # not to be tracked: they are no state of the optimizer
            return super()._backend_apply_gradients(grads, trainable_variables)

        def _clip_gradients(self, grads: Any) -> Any:
            return super()._clip_gradients(exchange.reduce(list(grads), self._passing))

    public: Any = next((base for base in kind.__mro__ if getattr(keras.optimizers, base.__name__, None) is base), kind)
    Exchanging.__name__ = Exchanging.__qualname__ = public.__name__
    Exchanging.__module__ = public.__module__
    return Exchanging
