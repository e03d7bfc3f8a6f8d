"""From a call to a result: what was asked for is resolved, becomes a request, and is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cargobike.core.asked import Asked
from cargobike.core.errors import ExperimentFailedError, InvalidInputError, StoreError
from cargobike.core.records import ExperimentState
from cargobike.core.registering.feeding import Feed, Feeder
from cargobike.core.version import __version__
from cargobike.engines.capabilities import Elsewhere, WarmsUp
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.experiments.asking import arguments
from cargobike.experiments.asking.recipe import read_recipe, recipe_files
from cargobike.experiments.asking.resolving import Objects, engine_of, resolve
from cargobike.experiments.asking.setup import Setup
from cargobike.experiments.asking.shipping import make_payload, ship
from cargobike.experiments.driving.conduct import conduct, take_up
from cargobike.experiments.driving.request import Callback, KeptCode, Request
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.results.failure import failure_of
from cargobike.experiments.results.result import Result
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial import WORKER_PROGRAM
from cargobike.experiments.trial import payload as payloads
from cargobike.store.files import project


def launch_experiment(asked: Asked, objects: Objects) -> Result:
    """Run a new experiment."""
    _refuse_while_loading()
    with engine_of(objects.engine) as engine:
        setup, train = resolve(asked, objects, engine)
        shipment = ship(train)
        data = None if objects.data is None else _write(objects.data)
        if data is not None:
            keeping = replace(setup.asked.keeping, data=data.folder)
            setup = replace(setup, asked=replace(setup.asked, keeping=keeping))
        payload = make_payload(setup.asked, shipment, data=data, travels=isinstance(engine, Elsewhere)).encode()
        request = make_request(
            setup,
            setup.plan(),
            engine=engine,
            payload=payload,
            libraries=shipment.libraries,
            code=KeptCode(
                source=shipment.source.encode("utf-8", "backslashreplace"),
                files=recipe_files(setup),
                function_file=shipment.file,
                resources=tuple(map(Path, setup.asked.keeping.versioned_resources)),
            ),
            callbacks=objects.callbacks,
            quiet=objects.quiet,
        )
        warm_up(engine, request)
        record, folder = conduct(request)
    return _judge(Result.from_record(record, folder), is_single=asked.is_single)


def resume_experiment(
    place: Boot | str | Engine,
    experiment_id: ExperimentLike,
    *,
    num_trials: int | None,
    workers: int | None,
    callbacks: Sequence[Callback],
    quiet: bool,
) -> Result:
    """Continue an experiment, possibly with more trials or other workers."""
    folder = find_experiment(experiment_id, with_checkpoints=True)
    setup = read_recipe(folder.code)
    plan = _changed(setup.plan(), num_trials, workers)
    try:
        payload = folder.payload.read_bytes()
    except OSError as error:
        raise StoreError(f"The code of {folder.id} cannot be read: {error}") from error
    with engine_of(place) as engine:
        request = make_request(setup, plan, engine=engine, payload=payload, callbacks=callbacks, quiet=quiet)
        warm_up(engine, request)
        record = take_up(request, folder)
    return _judge(Result.from_record(record, folder), is_single=setup.asked.is_single)


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
) -> Request:
    """Set up the optimizer, which is the last thing that can be refused, and return what is to be run.

    The optimizer gets the settings of the first launch, even if the plan has changed since: when an experiment is taken
    up again, it must repeat its answers before it may go further.
    """
    asked, optimizer = setup.asked, setup.optimizer
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
        stop_rules=setup.stop_rules,
        start_points=setup.start_points,
        engine=engine,
        project=project.prepare(),
        version=__version__,
        payload=payload,
        libraries=libraries,
        code=code or KeptCode(),
        callbacks=callbacks,
        quiet=quiet,
    )


def warm_up(engine: Engine, request: Request) -> None:
    """Prepare the engine's workers while everything else is put together, if the engine can."""
    if isinstance(engine, WarmsUp):
        engine.warm_up(WORKER_PROGRAM, request.asked.placement.resources, request.plan.workers)


def _refuse_while_loading() -> None:
    """Refuse to launch an experiment from a module that a worker is importing: its workers would import it again."""
    if payloads.is_loading:
        raise InvalidInputError(
            "A worker imports the module of the train function, and that module launches an experiment itself. "
            'Put the launch under `if __name__ == "__main__":`, or into a function.'
        )


def _changed(plan: Plan, num_trials: int | None, workers: int | None) -> Plan:
    """Return the plan of an experiment that is taken up with more trials, or other workers."""
    if num_trials is not None:
        plan = replace(plan, num_trials=arguments.at_least_one("num_trials", num_trials))
    if workers is not None:
        if plan.deterministic and workers != plan.workers:
            raise InvalidInputError(
                f"workers={workers} was given, but a deterministic search depends on its {plan.workers} workers."
            )
        plan = replace(plan, workers=arguments.at_least_one("workers", workers))
    return plan


def _write(data: object) -> Feed:
    """Write the data for the train function into the project, by the product that keeps tables."""
    from cargobike.core.registering.products import load, products  # noqa: PLC0415 - only for experiments with data

    feeder: Feeder = next(load(product.feeder) for product in products() if product.feeder)
    return feeder(data, project.prepare())


def _judge(result: Result, *, is_single: bool) -> Result:
    """Return the result, or raise if the experiment as a whole has failed."""
    failures = result.failures
    if is_single and failures:
        raise failure_of(result, failures[0])
    if result.state is ExperimentState.FAILED:
        raise ExperimentFailedError(f"experiment {result.id} was given up: {result.reason}", result)
    if failures and len(failures) == len(result.trials):
        raise ExperimentFailedError(
            f"all {len(failures)} trials of experiment {result.id} failed, the first one with:\n{failures[0].error}",
            result,
        )
    return result
