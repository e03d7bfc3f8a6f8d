"""Objects and variables of one rank for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cargobike.compat.horovod._tensorflow.crossing import as_written
from cargobike.compat.horovod.common import collectives
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.compat.horovod.tensorflow.mpi_ops import broadcast_
from cargobike.compat.noticing import formerly

__all__ = ["allgather_object", "broadcast_object", "broadcast_object_fn", "broadcast_variables"]


@as_written
@formerly("horovod.tensorflow.broadcast_variables")
def broadcast_variables(
    variables: Sequence[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> None:
    """Give variables of TensorFlow or Keras the values that they have on one rank."""
    broadcast_(list(variables), root_rank, process_set=process_set)


@as_written
def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the object of one rank."""
    return collectives.broadcast_object(obj, root_rank, name, process_set)


@as_written
def broadcast_object_fn(
    root_rank: int = 0, session: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Callable[[Any], Any]:
    """Return a function that gives every rank the object of one."""
    return lambda obj: broadcast_object(obj, root_rank, name=name, process_set=process_set)


@as_written
def allgather_object(
    obj: Any, session: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Return the objects of all ranks in their order."""
    return collectives.allgather_object(obj, name, process_set)
