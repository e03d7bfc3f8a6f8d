"""`horovod.spark.run` and `run_elastic`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from cargobike.compat.horovod.runner.calling import call_in_ranks
from cargobike.compat.horovod.runner.deadlines import read_seconds
from cargobike.compat.horovod.runner.front import elastic_terms, sizes_mistakes
from cargobike.compat.horovod.runner.jobs import call_elastically
from cargobike.compat.horovod.runner.output import RankOutput
from cargobike.compat.noticing import notice
from cargobike.core.errors import EngineError, InvalidInputError


def run(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    start_timeout: float | None = None,
    use_mpi: bool | None = None,
    use_gloo: bool | None = None,
    extra_mpi_args: str | None = None,
    env: Mapping[str, str] | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    verbose: int = 1,
    nics: Any = None,
    prefix_output_with_timestamp: bool = False,
    executable: str | None = None,
) -> list[Any]:
    """Call a function in ranks on the executors of the active Spark session, and return what each returned, by rank.

    Args:
        fn: The function.
        args: Its arguments.
        kwargs: Its named arguments.
        num_proc: How many ranks; Spark's default parallelism if not given.
        start_timeout: Accepted; the engine has deadlines of its own.
        use_mpi: Refused: there is no MPI here.
        use_gloo: Accepted: ranks always meet over gloo.
        extra_mpi_args: Accepted.
        env: Variables to set in each rank.
        stdout: Where standard output of the ranks goes; this process's own by default.
        stderr: Where standard error of the ranks goes.
        verbose: Accepted.
        nics: Accepted; the interface is that by which executors reach the driver.
        prefix_output_with_timestamp: Whether each line of output has the time before it.
        executable: Accepted; Spark decides which interpreter executors run.

    Raises:
        EngineError: If there is no active Spark session.
        TrialFailedError: If a rank fails, which ends all of them; a `RuntimeError` with the rank's own traceback.
    """
    notice("horovod.spark.run")
    if use_mpi:
        raise InvalidInputError("use_mpi=True was given; there is no MPI here: leave it out, ranks meet over gloo.")
    ranks = _ranks(num_proc)
    output = RankOutput(ranks, stdout=stdout, stderr=stderr, with_time=prefix_output_with_timestamp)
    return call_in_ranks(fn, args, kwargs or {}, ranks=ranks, engine="spark", env=env, output=output)


def run_elastic(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    start_timeout: float | None = None,
    elastic_timeout: float | None = None,
    reset_limit: int | None = None,
    cooldown_range: Any = None,
    env: Mapping[str, str] | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    verbose: int = 1,
    nics: Any = None,
    prefix_output_with_timestamp: bool = False,
    min_np: int | None = None,
    max_np: int | None = None,
) -> list[Any]:
    """Call a function in ranks on Spark's executors that may come and go; returns what each of the last returned.

    What it returns must lie on a disk that executors share with this process, as those of this machine do.

    Args:
        fn: The function, which trains under `hvd.elastic.run`.
        args: Its arguments.
        kwargs: Its named arguments.
        num_proc: How many ranks to begin with; Spark's default parallelism if not given.
        min_num_proc: The fewest ranks to go on with; `num_proc` by default.
        max_num_proc: The most ranks; `num_proc` by default.
        start_timeout: How many seconds ranks have to come; `HOROVOD_SPARK_START_TIMEOUT`, or 600 by default.
        elastic_timeout: How many seconds to wait when ranks are lost; `HOROVOD_ELASTIC_TIMEOUT`, or 600 by default.
        reset_limit: How often ranks may change.
        cooldown_range: Accepted.
        env: Variables to set in each rank.
        stdout: Where standard output of the ranks goes; this process's own by default.
        stderr: Where standard error of the ranks goes.
        verbose: Accepted.
        nics: Accepted.
        prefix_output_with_timestamp: Whether each line of output has the time before it.
        min_np: An older name of `min_num_proc`.
        max_np: An older name of `max_num_proc`.

    Raises:
        EngineError: If there is no active Spark session.
        TrialFailedError: If the job fails; a `RuntimeError` that names the rank, with its own traceback.
    """
    notice("horovod.spark.run_elastic")
    ranks = _ranks(num_proc)
    least, most = min_num_proc or min_np, max_num_proc or max_np or ranks
    if mistakes := sizes_mistakes(ranks, least, most):
        raise InvalidInputError("The job cannot be started.", mistakes)
    start_s = read_seconds(start_timeout, "HOROVOD_SPARK_START_TIMEOUT", 600.0)
    terms = elastic_terms(ranks, least, most, start_s, reset_limit, elastic_timeout)
    output = RankOutput(most, stdout=stdout, stderr=stderr, with_time=prefix_output_with_timestamp)
    return call_elastically(fn, args, kwargs or {}, terms, output, engine="spark", env=env, look_around=lambda: most)


def _ranks(num_proc: int | None) -> int:
    """Return how many ranks there are to be, from what was asked for or from Spark."""
    # Not imported: if no one has imported it, there is no session.
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.SparkContext._active_spark_context
    if context is None:
        raise EngineError(
            "There is no active Spark session. Begin one, SparkSession.builder.getOrCreate(), or start ranks on this "
            "machine: horovod.run(fn, num_proc=…)."
        )
    if num_proc is None:
        return int(context.defaultParallelism)
    if type(num_proc) is not int or num_proc < 1:
        raise InvalidInputError(f"num_proc={num_proc!r}; give a whole number of at least 1.")
    return num_proc
