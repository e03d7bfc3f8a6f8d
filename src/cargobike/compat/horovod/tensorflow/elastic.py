"""Training with TensorFlow that goes on while ranks come and go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tensorflow as tf

from cargobike.compat.horovod._keras.elastic import KerasState as TensorFlowKerasState
from cargobike.compat.horovod._keras.values import share_variables
from cargobike.compat.horovod._tensorflow.crossing import forget_failures, last_failure
from cargobike.compat.horovod.common.basics import init, rank, shutdown
from cargobike.compat.horovod.common.elastic import ObjectState, run_fn
from cargobike.compat.horovod.common.exceptions import HorovodInternalError
from cargobike.compat.horovod.common.objects import broadcast_object
from cargobike.compat.horovod.common.sessions import refuse_session
from cargobike.core.errors import InvalidInputError

__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]

_R = TypeVar("_R")


def run(func: Callable[..., _R]) -> Callable[..., _R]:
    """Make a function of a state one that begins again, with its state, whenever ranks have changed."""

    @functools.wraps(func)
    def call(state: Any, *args: Any, **kwargs: Any) -> _R:
        forget_failures()
        try:
            return func(state, *args, **kwargs)
        except tf.errors.OpError as error:
            # What a collective raises inside a graph, TensorFlow makes an error of its own.
            cause = last_failure()
            if isinstance(cause, HorovodInternalError):
                raise cause from error
            raise

    return run_fn(call, _rejoin)


def _rejoin() -> None:
    shutdown()
    init()


class TensorFlowState(ObjectState):
    """Variables of TensorFlow and further attributes.

    Args:
        variables: The variables; TensorFlow 2 has no collection of all of them.
        session: For TensorFlow 1; refused.
        **kwargs: Further attributes.

    Raises:
        ValueError: If no variables are given.
    """

    def __init__(self, variables: Sequence[Any] | None = None, session: Any = None, **kwargs: Any) -> None:
        refuse_session(session, "hvd.elastic.TensorFlowState")
        if not variables:
            raise InvalidInputError(
                "TensorFlow 2 has no collection of global variables: "
                "hvd.elastic.TensorFlowState(variables=model.variables, ...)."
            )
        self.variables = list(variables)
        self._values = [variable.numpy() for variable in self.variables]
        super().__init__(broadcast_object, rank, **kwargs)

    def save(self) -> None:
        """Keep a copy of all of it in memory."""
        self._values = [variable.numpy() for variable in self.variables]
        super().save()

    def restore(self) -> None:
        """Go back to what was saved last."""
        for variable, value in zip(self.variables, self._values, strict=True):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        """Take over what rank 0 has, and save it."""
        share_variables(self.variables, 0, "tensorflow_state")
        self._values = [variable.numpy() for variable in self.variables]
        super().sync()
