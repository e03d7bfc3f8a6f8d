"""Keras optimizers that apply the gradients of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from cargobike.compat.horovod._keras.compression import Compression
from cargobike.compat.horovod._keras.local_layers import variables_of
from cargobike.compat.horovod.common.gradients import Reduction
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.compat.horovod.common.reductions import Average, ReduceOp, Sum
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError
from cargobike.training.keras_exchange import Silent, exchanging

_reduction: type[Reduction]
if keras.backend.backend() == "tensorflow":
    from cargobike.compat.horovod._tensorflow.gradients import TensorFlowReduction

    _reduction = TensorFlowReduction
else:
    from cargobike.compat.horovod._keras.torch_gradients import TorchReduction

    _reduction = TorchReduction

BACKENDS = ("tensorflow", "torch")


class _Exchange(Silent):
    """Reduces the mean of some passes, or makes it their sum first."""

    def __init__(self, reduction: Reduction, factor: float) -> None:
        self.reduction = reduction
        self._factor = factor

    def reduce(self, gradients: list[Any], variables: Sequence[Any]) -> list[Any]:
        if self._factor != 1:
            gradients = [gradient * self._factor for gradient in gradients]
        return self.reduction.reduce(gradients, variables)


@formerly("horovod.keras.DistributedOptimizer")
def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: ReduceOp = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return an optimizer like another, with its state, that applies the gradients of all ranks.

    Args:
        optimizer: A Keras optimizer.
        name: What its operations are called; the same on all ranks.
        device_dense: Means nothing here.
        device_sparse: Means nothing here.
        compression: What gradients become on their way.
        sparse_as_dense: Whether gradients of embeddings travel as whole tensors.
        gradient_predivide_factor: Divides before the sum of a mean, and multiplies after it.
        op: `hvd.Average` or `hvd.Sum`.
        backward_passes_per_step: After how many passes weights change.
        average_aggregated_gradients: Whether the gradients of these passes are averaged; by default they are summed.
        num_groups: Means nothing here: gradients travel together.
        groups: Means nothing here: gradients travel together.
        process_set: Which ranks.
        scale_local_gradients: Whether gradients of local variables are divided by the number of ranks.

    Raises:
        ValueError: If something given cannot be used.
    """
    _check(optimizer, op, backward_passes_per_step)
    reduction = _reduction(
        name or f"Distributed{type(optimizer).__name__}",
        op,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        process_set,
        scale_local_gradients,
    )
    passes = backward_passes_per_step
    exchange = _Exchange(reduction, 1 if average_aggregated_gradients else passes)
    made = exchanging(optimizer, exchange, **({"gradient_accumulation_steps": passes} if passes > 1 else {}))

    def register_local_var(self: Any, variable: Any) -> None:
        reduction.local.add(reduction.key_of(variable))

    type(made).register_local_var = register_local_var
    return made


def PartialDistributedOptimizer(optimizer: Any, *args: Any, local_layers: Any = None, **kwargs: Any) -> Any:
    """Return an optimizer as `DistributedOptimizer` does, with layers whose gradients stay those of each rank."""
    variables = variables_of(local_layers)
    made = DistributedOptimizer(optimizer, *args, **kwargs)
    for variable in variables:
        made.register_local_var(variable)
    return made


def _check(optimizer: Any, op: ReduceOp, passes: int) -> None:
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise InvalidInputError(
            f"hvd.DistributedOptimizer takes an optimizer of Keras 3, such as keras.optimizers.Adam(0.001), not "
            f"{type(optimizer).__module__}.{type(optimizer).__name__}. Those of TensorFlow 1 (tf.compat.v1.train) "
            "and keras.optimizers.legacy are not supported."
        )
    mistakes = []
    if keras.backend.backend() not in BACKENDS:
        mistakes.append(f"Keras runs on {keras.backend.backend()!r}; set KERAS_BACKEND to one of {', '.join(BACKENDS)}")
    if op not in (Average, Sum):
        mistakes.append(f"op must be hvd.Average or hvd.Sum with Keras, not {op!r}")
    if type(passes) is not int or passes < 1:
        mistakes.append(f"backward_passes_per_step must be a whole number of at least 1, not {passes!r}")
    elif passes > 1 and optimizer.gradient_accumulation_steps:
        mistakes.append("the optimizer adds up passes by itself: drop backward_passes_per_step")
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        mistakes.append(
            "a LossScaleOptimizer decides for each rank alone whether to apply gradients: wrap its inner optimizer"
        )
    if mistakes:
        raise InvalidInputError("hvd.DistributedOptimizer cannot be made.", mistakes)
