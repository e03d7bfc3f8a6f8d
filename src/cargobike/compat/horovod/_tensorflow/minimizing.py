"""`optimizer.minimize`, which Keras 3 no longer has: gradients and their step in one call."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from cargobike.compat.horovod.common.sessions import SessionError


def minimize(optimizer: Any, loss: Any, var_list: Any = None, tape: Any = None) -> Any:
    """Change variables by one step down the gradient of a loss.

    Args:
        optimizer: The optimizer that this is a method of.
        loss: A function without arguments that computes it; or its value, which a tape has seen.
        var_list: The variables, or a function that returns them once the loss was computed.
        tape: What has seen the value.

    Raises:
        RuntimeError: If there is a value without a tape, or there are no variables, as in TensorFlow 1.
    """
    if var_list is None or (tape is None and not callable(loss)):
        raise SessionError(
            "optimizer.minimize(loss) is for TensorFlow 1, whose graphs know how a loss came about and all variables.",
            [
                "give a function, and variables: optimizer.minimize(lambda: compute_loss(), model.trainable_variables)",
                "or a value, variables, and the tape that has seen it: optimizer.minimize(loss, variables, tape=tape)",
            ],
        )
    if callable(loss):
        tape = tape or tf.GradientTape()
        with tape:
            loss = loss()
    variables = list(var_list() if callable(var_list) else var_list)
    return optimizer.apply_gradients(list(zip(tape.gradient(loss, variables), variables, strict=True)))
