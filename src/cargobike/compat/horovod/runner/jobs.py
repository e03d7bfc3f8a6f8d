"""Jobs that are no experiment: programs as ranks, and functions whose ranks come and go."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import msgspec

from cargobike.compat.horovod.common.variables import ELASTIC
from cargobike.compat.horovod.runner.output import RankOutput
from cargobike.compat.horovod.runner.results import new_key, take_results, write_result
from cargobike.core.errors import FunctionError, TrialFailedError
from cargobike.core.records import Resources
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.engines.local.gpus import detect_gpus
from cargobike.engines.registry import resolve_engine
from cargobike.experiments.asking.function import find_train
from cargobike.experiments.asking.libraries import libraries_needed
from cargobike.experiments.trial.exposing import expose
from cargobike.training.regrouping.driving import Driver, JobFailedError
from cargobike.training.regrouping.member import here_regrouping
from cargobike.training.regrouping.program import MODULE, Job
from cargobike.training.regrouping.roster import Terms


def run_job(
    function: Callable[[], None],
    terms: Terms,
    output: RankOutput,
    *,
    engine: str | Engine = "local",
    preload: Sequence[str] = (),
    look_around: Callable[[], int | None] | None = None,
) -> list[int]:
    """Call a function in ranks until all have returned; returns the ranks that have.

    Args:
        function: What each rank calls.
        terms: How many ranks there may be.
        output: What passes on what they print.
        engine: Where they live.
        preload: Libraries that the function needs.
        look_around: Returns how many ranks there should be, `None` if that did not change.

    Raises:
        JobFailedError: If it fails.
    """
    job = Job(
        function=cloudpickle.dumps(function),
        preload=list(preload),
        sys_path=[os.path.abspath(path) for path in sys.path],
        argv=sys.argv,
        launch_dir=os.getcwd(),
        mark=secrets.token_hex(8),
    )
    gpus = len(detect_gpus()) if engine == "local" else 0
    try:
        with tempfile.TemporaryDirectory(prefix="cargobike-horovod-") as folder, contextlib.ExitStack() as ours:
            boot = ours.enter_context(Boot(MODULE)) if engine == "local" else None
            place = ours.enter_context(resolve_engine(engine, boot))
            return Driver(
                engine=place,
                folder=Path(folder),
                payload=msgspec.msgpack.encode(job),
                terms=terms,
                resources=Resources(gpus=min(1.0, gpus / terms.start)),
                on_output=output.take,
                look_around=look_around,
            ).run()
    finally:
        output.close()


def call_elastically(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    terms: Terms,
    output: RankOutput,
    *,
    engine: str | Engine = "local",
    env: Mapping[str, str] | None = None,
    look_around: Callable[[], int | None] | None = None,
) -> list[Any]:
    """Call a function in ranks that may come and go, and return what each of the last ones returned.

    Raises:
        FunctionError: If it cannot be sent.
        TrialFailedError: If the job fails; names the rank, with its own traceback.
    """
    key = new_key()
    variables = {**(env or {}), ELASTIC: "1"}
    with tempfile.TemporaryDirectory(prefix="cargobike-horovod-results-") as results:
        folder = Path(results)

        def rank_function() -> None:
            expose(func)
            os.environ.update(variables)
            result = func(*args, **kwargs)
            here = here_regrouping()
            if here.generation < 0:  # it has never met the others: they count each other now
                here.meet()
            write_result(folder, here.rank, result, key)

        try:
            ranks = run_job(
                rank_function,
                terms,
                output,
                engine=engine,
                preload=libraries_needed(find_train(func)),
                look_around=look_around,
            )
        except JobFailedError as failure:
            raise TrialFailedError(
                f"the job failed: {failure.why}", rank=failure.rank, host=failure.host, traceback=failure.why
            ) from None
        except (TypeError, AttributeError) as error:
            raise FunctionError(f"The function cannot be sent to ranks: {error}") from error
        return take_results(folder, ranks, key)
