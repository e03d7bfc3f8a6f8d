"""Take an experiment up again: from its folder and what is to be different to a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.values.kinds import read_flag
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.experiments.asking import arguments
from cargobike.experiments.asking.arguments import SpaceLike
from cargobike.experiments.asking.changed_space import in_changed_space
from cargobike.experiments.asking.feeding import check_feed
from cargobike.experiments.asking.launching import make_request, outcome, warm_up
from cargobike.experiments.asking.recipe import read_recipe
from cargobike.experiments.asking.resolving import engine_of
from cargobike.experiments.driving.conduct import take_up
from cargobike.experiments.driving.request import Callback
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.reading import resumptions
from cargobike.experiments.results.result import Result
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial.payload import Payload
from cargobike.store.files import project


def resume_experiment(
    place: Boot | str | Engine,
    experiment_id: ExperimentLike,
    *,
    num_trials: int | None,
    workers: int | None,
    space: SpaceLike | None,
    defaults: Mapping[str, Any] | None,
    callbacks: Sequence[Callback],
    quiet: bool,
) -> Result:
    """Continue an experiment, possibly with more trials, other workers or in a changed space."""
    arguments.check_callbacks(callbacks)
    read_flag("quiet", quiet)
    project.check_directory()
    folder = find_experiment(experiment_id, with_checkpoints=True)
    setup = read_recipe(folder.code)
    before = resumptions(folder)
    if num_trials is None and before:
        num_trials = before[-1].num_trials
    setup, changed = in_changed_space(setup, folder, before, space, defaults)
    in_process = arguments.runs_here(setup.asked.placement.workers if workers is None else workers)
    plan = _changed(setup.plan(), num_trials, 1 if in_process else workers)
    try:
        payload = folder.payload.read_bytes()
    except OSError as error:
        raise StoreError(f"The code of {folder.id} cannot be read: {error}") from error
    if setup.asked.feeding.source:
        check_feed(Payload.decode(payload).data, folder.project.root)
    with engine_of(place) as engine:
        if in_process:
            arguments.check_here(engine, is_gang=plan.meets or bool(plan.servers))
        request = make_request(
            setup, plan, engine=engine, payload=payload, callbacks=callbacks, quiet=quiet, in_process=in_process
        )
        request = replace(request, new_space=changed)
        warm_up(engine, request)
        record = take_up(request, folder)
    return outcome(record, folder, is_single=setup.asked.is_single)


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
