"""A function as the ranks of a job: `experiment.allreduce`, with what each rank returned by its rank."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cargobike import experiment
from cargobike.compat.horovod.common.variables import set_rank_variables
from cargobike.compat.horovod.runner.output import Following, RankOutput
from cargobike.compat.horovod.runner.results import new_key, take_results, write_result
from cargobike.core.errors import FunctionError, TrialFailedError
from cargobike.core.records import ExperimentState
from cargobike.engines.engine import Engine
from cargobike.experiments.trial import context
from cargobike.experiments.trial.exposing import expose


def call_in_ranks(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    ranks: int,
    engine: str | Engine = "local",
    env: Mapping[str, str] | None = None,
    output: RankOutput | None = None,
) -> list[Any]:
    """Call a function in so many ranks and return what each of them returned.

    Args:
        func: The function; it may be a local one, or one of a script or notebook.
        args: Its arguments.
        kwargs: Its named arguments.
        ranks: How many.
        engine: Where they live.
        env: Variables to set in each rank before the function is called.
        output: What passes on what they print.

    Raises:
        FunctionError: If it is no function, or it cannot be sent.
        TrialFailedError: If a rank fails, which ends all of them; a `RuntimeError` with the rank's own traceback.
        KeyboardInterrupt: If Ctrl-C was pressed; all ranks have been ended.
    """
    if not callable(func):
        raise FunctionError(f"func must be a function, {func!r} was given.")
    key = new_key()
    train = _as_train_function(func, tuple(args), dict(kwargs), key, dict(env or {}))
    with Following(ranks, output or RankOutput(ranks)) as following:
        try:
            result = experiment.allreduce(
                train, workers=ranks, engine=engine, working_directory="launch", callbacks=[following], quiet=True
            )
        except TrialFailedError as error:
            raise _without_later_attempts(error) from error.__cause__
    if result.state is ExperimentState.INTERRUPTED:
        raise KeyboardInterrupt(f"the {ranks} ranks of {getattr(func, '__name__', func)!s} were interrupted")
    return take_results(result.trials[0].experiment.trial(0).files, range(ranks), key)


def _as_train_function(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], key: bytes, env: dict[str, str]
) -> Callable[[], None]:
    @functools.wraps(func, updated=())
    def train() -> None:
        here = context.current()
        if here.attempt > 1:
            raise RuntimeError(_LOST)
        expose(func)
        os.environ.update(env)
        set_rank_variables()
        write_result(here.files, here.rank, func(*args, **kwargs), key)

    train.__name__ = getattr(func, "__name__", type(func).__name__)
    train.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    return train


_LOST = "a rank of this job was lost; Horovod's programs are not started again unless they are elastic (min_num_proc=…)"


def _without_later_attempts(error: TrialFailedError) -> TrialFailedError:
    """Return the error of the attempt that counts: a job that is not elastic has one only."""
    if error.result is None or _LOST not in str(error):
        return error
    attempts = error.result.record.attempts.get(error.trial or 0, [])
    why = next((attempt.ended for attempt in attempts if attempt.ended), "") or _LOST
    return TrialFailedError(
        f"the run {error.experiment} failed:\n{why}",
        experiment=error.experiment,
        trial=error.trial,
        rank=int(named[1]) if (named := re.match(r"rank (\d+)", why)) else None,
        host=error.host,
        log_tail=error.log_tail,
        result=error.result,
    )
