"""Joins the job, and says which rank this is."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cargobike.compat.horovod.common import process_sets as sets
from cargobike.compat.horovod.common import starting, world
from cargobike.compat.horovod.common.process_sets import ProcessSet
from cargobike.compat.horovod.common.world import World
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError
from cargobike.core.running.member import current
from cargobike.training.named.engine import Engine
from cargobike.training.named.timeline import Timeline


@formerly("horovod.torch.init")
def init(comm: Any = None, process_sets: Sequence[ProcessSet] | str | None = None) -> None:
    """Join the job that the environment describes, or be rank 0 of 1; does nothing if that was done.

    Args:
        comm: All ranks, as a list; a communicator of MPI is refused, as there is no MPI here.
        process_sets: Sets of ranks to register from the start. `"dynamic"` is accepted: sets can always be added.
    """
    if world.known() is not None:
        return
    if process_sets is not None and isinstance(process_sets, str) and process_sets.lower() != "dynamic":
        raise InvalidInputError(f"process_sets must be a list of ProcessSet or 'dynamic', not {process_sets!r}.")
    if comm is not None and not isinstance(comm, list | tuple):
        raise InvalidInputError(f"comm must be a list of ranks, not {type(comm).__name__}: there is no MPI here.")
    group = starting.meet(on_broken=_give_up_operations)
    if comm and sorted(comm) != list(range(group.world_size)):
        raise InvalidInputError(
            f"comm must name all ranks from 0 to {group.world_size - 1}, {list(comm)} was given. For a part of them "
            "use process_sets=[hvd.ProcessSet(ranks)]."
        )
    place = starting.find_place(group, os.environ)
    limits = starting.read_limits(os.environ)
    secret = current().secret
    engine = Engine(
        group.store, group.rank, group.world_size, secret=secret, stall_s=limits.stall_s, warn_s=limits.warn_s
    )
    world.enter(World(place, engine))
    if os.environ.get("HOROVOD_TIMELINE"):
        start_timeline(os.environ["HOROVOD_TIMELINE"])
    sets.begin([] if process_sets is None or isinstance(process_sets, str) else process_sets)


def _give_up_operations(why: str) -> None:
    """Make operations fail that wait for a rank which is lost, as the launcher of an elastic job has noticed."""
    here = world.known()
    if here is not None:
        here.engine.abort(why)


def shutdown() -> None:
    """Leave the job; `init` may join again."""
    here = world.known()
    if here is None:
        return
    stop_timeline()
    sets.end()
    world.enter(None)
    here.engine.close()


atexit.register(shutdown)


def is_initialized() -> bool:
    """Tell whether this process has joined a job."""
    return world.known() is not None


def rank() -> int:
    """Return this process's rank."""
    return world.here().place.rank


def size() -> int:
    """Return how many ranks the job has."""
    return world.here().place.size


def local_rank() -> int:
    """Return which of the ranks on this host this is."""
    return world.here().place.local_rank


def local_size() -> int:
    """Return how many ranks are on this host."""
    return world.here().place.local_size


def cross_rank() -> int:
    """Return which of the ranks with this local rank this is, counted over hosts."""
    return world.here().place.cross_rank


def cross_size() -> int:
    """Return on how many hosts there is a rank with this local rank."""
    return world.here().place.cross_size


def is_homogeneous() -> bool:
    """Tell whether all hosts have equally many ranks."""
    return world.here().place.is_homogeneous


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Begin to note when operations are asked for, agreed on and done; rank 0 writes them as a Chrome trace."""
    here = world.here()
    if here.place.rank == 0:
        here.engine.timeline = Timeline(Path(file_path), here.place.rank)


def stop_timeline() -> None:
    """Write what was noted since `start_timeline`."""
    engine = world.here().engine
    timeline, engine.timeline = engine.timeline, None
    if timeline is not None:
        timeline.stop()
