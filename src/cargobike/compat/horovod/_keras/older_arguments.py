"""Lets Keras 3 take what programs for Horovod pass it, which it refuses otherwise.

`compile(experimental_run_tf_function=False)`, `Adam(lr=0.1)`, `optimizer.lr`, `optimizer.variables()`, and on
TensorFlow `optimizer.minimize(loss, variables)`. Programs ask for it by importing `horovod.keras` or
`horovod.tensorflow` from here; others never see it.
"""

from __future__ import annotations

import functools
from typing import Any

import keras

_minimize: Any = None
if keras.backend.backend() == "tensorflow":
    from cargobike.compat.horovod._tensorflow.minimizing import minimize as _minimize


class CallableList(list[Any]):
    """Variables, which programs for Keras 2 call."""

    def __call__(self) -> list[Any]:
        """Return them."""
        return list(self)


def tolerate() -> None:
    """Do so in this process, from now on."""
    optimizer: Any = keras.optimizers.Optimizer
    if hasattr(optimizer, "lr"):
        return
    # In the class that defines it: Keras compiles no model that it loads whose class has another compile than that.
    trainer: Any = next(base for base in keras.Model.__mro__ if "compile" in vars(base))
    trainer.compile = _without(trainer.compile, "experimental_run_tf_function")
    plain_init, plain_variables = optimizer.__init__, optimizer.variables

    @functools.wraps(plain_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("lr") is not None:
            kwargs["learning_rate"] = kwargs["lr"]
        kwargs.pop("lr", None)
        plain_init(self, *args, **kwargs)

    optimizer.__init__ = init
    optimizer.variables = property(lambda self: CallableList(plain_variables.fget(self)))
    optimizer.lr = property(lambda self: self.learning_rate, _set_rate)
    if _minimize is not None:
        optimizer.minimize = _minimize


def _set_rate(optimizer: Any, value: Any) -> None:
    optimizer.learning_rate = value


def _without(function: Any, name: str) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop(name, None)
        return function(*args, **kwargs)

    return call
