"""Runs one function on several workers that have nothing to do with each other."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from cargobike import experiment
from cargobike.compat.noticing import notice
from cargobike.compat.tensorflowonspark import places
from cargobike.compat.tensorflowonspark.TFSparkNode import TFNodeContext
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError
from cargobike.core.running.member import current
from cargobike.engines.engine import Engine
from cargobike.experiments.results.failure import failure_of

__all__ = ["run"]


def run(
    sc: Any,
    map_fn: Callable[[Any, TFNodeContext], object],
    tf_args: Any,
    num_executors: int,
    use_barrier: bool = True,
    *,
    engine: str | Engine | None = None,
) -> None:
    """Call a function on each of several workers, and wait until all have returned.

    Args:
        sc: A SparkContext or SparkSession; `None` for processes of this machine.
        map_fn: `map_fn(args, ctx)`; of `ctx` there are `worker_num`, `executor_id`, `num_workers` and paths.
        tf_args: What it gets as `args`.
        num_executors: How many.
        use_barrier: Whether all run at the same time; else each runs when there is room.
        engine: An engine of ours to run on, instead of `sc`.

    Raises:
        InvalidInputError: If there is not room for so many at the same time, or something given cannot be used.
        TrialFailedError: If the function fails.
    """
    notice("tensorflowonspark.TFParallel.run")
    if type(num_executors) is not int or num_executors < 1:
        raise InvalidInputError(f"num_executors={num_executors!r} was given; give a whole number of at least 1.")
    place = places.find(sc, engine, tensorboard=False, log_dir=None)
    call = functools.partial(_call, map_fn, tf_args, num_executors, place.default_fs, os.getcwd())
    options: dict[str, Any] = {
        "engine": place.engine,
        "name": getattr(map_fn, "__name__", "map_fn").lstrip("_"),
        "working_directory": "launch" if place.is_here else "trial",
        "stall_timeout_s": None,
        "quiet": True,
    }
    if use_barrier:
        experiment.allreduce(call, workers=num_executors, **options)
        return
    result = experiment.launch(call, [{"worker_num": number} for number in range(num_executors)], **options)
    if result.failures:
        raise failure_of(result, result.failures[0])


def _call(
    map_fn: Callable[[Any, TFNodeContext], object],
    args: Any,
    num_executors: int,
    default_fs: str,
    working_dir: str,
    worker_num: int | None = None,
) -> float:
    os.environ[settings.COMPAT_QUIET] = "1"
    number = current().rank if worker_num is None else worker_num
    ctx = TFNodeContext(executor_id=number, defaultFS=default_fs, working_dir=working_dir)
    ctx.num_workers = num_executors
    if isinstance(args, list):
        sys.argv = args
    map_fn(args, ctx)
    return 0.0
