"""Where Estimators train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark import SparkContext

from cargobike.compat.horovod.spark.runner import run as run_on_spark
from cargobike.core.errors import EngineError, InvalidInputError


class Backend:
    """Where an Estimator trains, with how many ranks.

    Attributes:
        engine: What our own Estimator calls the place: `"spark"`, or `"local"` for this machine.
    """

    engine: str = "spark"

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Call a function in each rank, and return what each returned."""
        raise NotImplementedError

    def num_processes(self) -> int:
        """Return how many ranks there are."""
        raise NotImplementedError


class SparkBackend(Backend):
    """The executors of the active Spark session.

    Args:
        num_proc: How many ranks; Spark's default parallelism by default.
        env: Variables to set in each rank, for `run`.
        **kwargs: Further arguments of `horovod.spark.run`, for `run`.
    """

    def __init__(self, num_proc: int | None = None, env: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        if num_proc is not None and (type(num_proc) is not int or num_proc < 1):
            raise InvalidInputError(f"num_proc={num_proc!r}; give a whole number of at least 1.")
        self._num_proc = num_proc
        self._env = dict(env or {})
        self._kwargs = kwargs

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Call a function in each rank, and return what each returned."""
        merged = {**self._env, **(env or {})}
        return run_on_spark(
            fn, args=args, kwargs=kwargs, num_proc=self.num_processes(), env=merged or None, **self._kwargs
        )

    def num_processes(self) -> int:
        """Return how many ranks there are.

        Raises:
            EngineError: If Spark is to say it, and there is no session.
        """
        if self._num_proc is not None:
            return self._num_proc
        context = SparkContext._active_spark_context
        if context is None:
            raise EngineError("There is no active Spark session: SparkSession.builder.getOrCreate(), or give num_proc.")
        return int(context.defaultParallelism)
