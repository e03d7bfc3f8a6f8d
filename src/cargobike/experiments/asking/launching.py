"""From a call to a result: what was asked for is resolved, becomes a request, and is run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cargobike.core.asked import Asked
from cargobike.core.errors import ExperimentFailedError, InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState
from cargobike.core.registering.feeding import Feed
from cargobike.core.registering.steps import step_token
from cargobike.core.version import __version__
from cargobike.engines.capabilities import Elsewhere, WarmsUp
from cargobike.engines.engine import Engine
from cargobike.experiments.asking import arguments
from cargobike.experiments.asking.importing import stop_launch_on_import
from cargobike.experiments.asking.recipe import recipe_files
from cargobike.experiments.asking.resolving import Objects, engine_of, resolve
from cargobike.experiments.asking.setup import Setup
from cargobike.experiments.asking.shipping import make_payload, ship
from cargobike.experiments.driving.conduct import conduct
from cargobike.experiments.driving.request import Callback, KeptCode, Request
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial import WORKER_PROGRAM
from cargobike.experiments.trial import payload as payloads
from cargobike.store.files import project

if TYPE_CHECKING:
    from cargobike.experiments.results.result import Result

_LONGEST_SHOWN = 300


def launch_experiment(asked: Asked, objects: Objects) -> Result:
    """Run a new experiment."""
    asked = arguments.check_words(asked, quiet=objects.quiet)
    _refuse_while_loading()
    project.check_directory()
    with engine_of(objects.engine) as engine:
        setup, train = resolve(asked, objects, engine)
        shipment = ship(train)
        data = None
        if objects.data is not None:
            data, fed = _feed_with(objects.data, setup.asked, travels=isinstance(engine, Elsewhere))
            setup = replace(setup, asked=fed)
        with _only_text():
            payload = make_payload(
                setup.asked,
                shipment,
                data=data,
                travels=isinstance(engine, Elsewhere),
                judged_by_reports=setup.judged_by_reports,
            ).encode()
            files = recipe_files(setup)
        request = make_request(
            setup,
            setup.plan(),
            engine=engine,
            payload=payload,
            libraries=shipment.libraries,
            code=KeptCode(
                source=shipment.source.encode("utf-8", "backslashreplace"),
                files=files,
                function_file=shipment.file,
                resources=tuple(map(Path, setup.asked.keeping.versioned_resources)),
            ),
            callbacks=objects.callbacks,
            quiet=objects.quiet,
            in_process=arguments.runs_here(setup.asked.placement.workers),
            function=train.function,
        )
        warm_up(engine, request)
        record, folder = conduct(request)
    return outcome(record, folder, is_single=asked.is_single)


def make_request(
    setup: Setup,
    plan: Plan,
    *,
    engine: Engine,
    payload: bytes,
    libraries: tuple[str, ...] = (),
    code: KeptCode | None = None,
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
    in_process: bool = False,
    function: Callable[..., Any] | None = None,
) -> Request:
    """Set up the optimizer, which is the last thing that can be refused, and return what is to be run.

    The optimizer gets the settings of the first launch, even if the plan has changed since: when an experiment is taken
    up again, it must repeat its answers before it may go further.
    """
    asked, optimizer, stop_rules = setup.asked, setup.optimizer, setup.stop_rules
    if asked.search.repeats > 1:
        from cargobike.search.optimizers.repeated import Repeated  # noqa: PLC0415 - most experiments repeat nothing

        optimizer, stop_rules = Repeated(optimizer, asked.search.repeats, stop_rules), ()
    optimizer.deterministic = plan.deterministic
    optimizer.objectives = asked.aim.objectives
    optimizer.setup(
        setup.space, num_trials=asked.search.num_trials, direction=setup.direction, seed=asked.search.seed or 0
    )
    optimizer.initialize()
    if setup.past:
        optimizer.learn_from(setup.past)
    return Request(
        asked=asked,
        plan=plan,
        names=setup.names,
        optimizer=optimizer,
        stop_rules=stop_rules,
        start_points=setup.start_points,
        engine=engine,
        project=project.prepare(),
        version=__version__,
        payload=payload,
        libraries=libraries,
        code=code or KeptCode(),
        callbacks=callbacks,
        quiet=quiet,
        in_process=in_process,
        function=function,
    )


def warm_up(engine: Engine, request: Request) -> None:
    """Prepare the engine's workers while everything else is put together, if the engine can."""
    if isinstance(engine, WarmsUp) and not request.in_process:
        engine.warm_up(WORKER_PROGRAM, request.asked.placement.resources, request.plan.workers)


def _refuse_while_loading() -> None:
    """Refuse to launch an experiment from a file that is imported for another one: its import would never end."""
    stop_launch_on_import()
    if payloads.is_loading:
        raise InvalidInputError(
            "A worker imports the module of the train function, and that module launches an experiment itself. "
            'Put the launch under `if __name__ == "__main__":`, or into a function.'
        )


@contextlib.contextmanager
def _only_text() -> Iterator[None]:
    """Refuse what cannot be written down: half a character in a name or a value, a path that is not UTF-8."""
    try:
        yield
    except UnicodeEncodeError as error:
        text = repr(error.object)[:_LONGEST_SHOWN]
        raise InvalidInputError(
            f"{text} cannot be sent to workers: it holds what is not text (a path that is not UTF-8, or half a "
            "character). Rename the folder or the file, or change the text."
        ) from error


def _feed_with(data: object, asked: Asked, *, travels: bool) -> tuple[Feed, Asked]:
    from cargobike.experiments.asking.feeding import feed_with  # noqa: PLC0415 - only for experiments with data

    return feed_with(data, asked, travels=travels)


def outcome(record: ExperimentRecord, folder: ExperimentFolder, *, is_single: bool) -> Result:
    """Return the result, or raise if the experiment as a whole has failed."""
    # Not before there is a result: the first trial would wait for it.
    from cargobike.experiments.results.failure import debugging_hint, failure_of  # noqa: PLC0415
    from cargobike.experiments.results.result import Result  # noqa: PLC0415

    result = Result.from_record(record, folder)
    if result.state is ExperimentState.INTERRUPTED and step_token():
        # Half a search is no result for the steps that follow: the run ends, and goes on with it when it is resumed.
        raise KeyboardInterrupt(f"experiment {result.id} was interrupted")
    failures = result.failures
    if is_single and failures:
        raise failure_of(result, failures[0])
    if result.state is ExperimentState.FAILED:
        hint = debugging_hint(result, failures[0]) if failures else ""
        raise ExperimentFailedError(f"experiment {result.id} failed: {result.reason}{hint}", result)
    return result
