"""A tape whose gradients are those of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from cargobike.compat.horovod._keras.local_layers import variables_of
from cargobike.compat.horovod._tensorflow.crossing import as_written
from cargobike.compat.horovod._tensorflow.gradients import TensorFlowReduction
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.compat.horovod.common.reductions import Average, ReduceOp
from cargobike.compat.horovod.tensorflow.compression import Compression
from cargobike.compat.noticing import formerly


class _Distributed(tf.GradientTape):
    """A tape that goes on where another is; `gradient` reduces over all ranks."""

    _reduction: TensorFlowReduction

    @as_written
    def register_local_source(self, source: Any) -> None:
        """Let the gradient of a variable be that of this rank."""
        self._reduction.local.add(self._reduction.key_of(source))

    @as_written
    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return gradients of all ranks; arguments as of `tf.GradientTape.gradient`."""
        kwargs.pop("use_generic_names", None)
        gradients = super().gradient(target, sources, output_gradients, *args, **kwargs)
        if isinstance(sources, list | tuple) and not any(isinstance(source, list | tuple | dict) for source in sources):
            return self._reduction.reduce(gradients, sources)
        flat = self._reduction.reduce(_flat(gradients), _flat(sources))
        return tf.nest.pack_sequence_as(sources, flat)

    @as_written
    def get_local_and_global_gradients(
        self, target: Any, sources: Sequence[Any], output_gradients: Any = None, use_generic_names: bool = False
    ) -> tuple[list[Any], list[Any]]:
        """Return pairs of variables and gradients: those that are local, and those of all ranks."""
        pairs = list(zip(sources, self.gradient(target, sources, output_gradients), strict=True))
        are_local = [self._reduction.key_of(source) in self._reduction.local for source in sources]
        return (
            [pair for pair, is_local in zip(pairs, are_local, strict=True) if is_local],
            [pair for pair, is_local in zip(pairs, are_local, strict=True) if not is_local],
        )


@as_written
@formerly("horovod.tensorflow.DistributedGradientTape")
def DistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return a tape like another whose `gradient` reduces over all ranks.

    Args:
        gradtape: A `tf.GradientTape`, before or after its `with`.
        device_dense: Means nothing here.
        device_sparse: Means nothing here.
        compression: What gradients become on their way.
        sparse_as_dense: Whether gradients of embeddings travel as whole tensors.
        op: `hvd.Average`, `hvd.Sum` or `hvd.Adasum`.
        gradient_predivide_factor: Divides before the sum of a mean, and multiplies after it.
        num_groups: Means nothing here: gradients travel together.
        groups: Means nothing here: gradients travel together.
        process_set: Which ranks.
        scale_local_gradients: Whether gradients of local sources are divided by the number of ranks.
    """
    reduction = TensorFlowReduction(
        "DistributedGradientTape",
        op,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        process_set,
        scale_local_gradients,
    )
    kind = type(gradtape)
    made: Any = type(kind.__name__, (_Distributed, kind) if kind is not tf.GradientTape else (_Distributed,), {})
    tape = made.__new__(made)
    tape.__dict__.update(gradtape.__dict__)
    tape._reduction = reduction
    return tape


@as_written
def PartialDistributedGradientTape(gradtape: Any, *args: Any, local_layers: Any = None, **kwargs: Any) -> Any:
    """Return a tape as `DistributedGradientTape` does, with layers whose gradients stay those of each rank."""
    tape = DistributedGradientTape(gradtape, *args, **kwargs)
    for variable in variables_of(local_layers):
        tape.register_local_source(variable)
    return tape


def _flat(structure: Any) -> list[Any]:
    return list(tf.nest.flatten(structure))
