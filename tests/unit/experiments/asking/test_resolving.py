"""What a call becomes before anything starts: objects, and a record with nothing left open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cargobike.core.asked import Aim, Asked, Gang, Keeping, Limits, Named, Placement, Search
from cargobike.core.errors import InvalidInputError
from cargobike.engines.local.engine import LocalEngine
from cargobike.experiments.asking.gangs import gang_of, gang_with_servers
from cargobike.experiments.asking.recipe import recipe_files
from cargobike.experiments.asking.resolving import Objects, engine_of, resolve
from cargobike.experiments.asking.setup import Setup
from cargobike.experiments.asking.shipping import PARAMETER_SERVER, make_payload, ship
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.auto import Auto
from cargobike.search.optimizers.listed import Listed
from cargobike.search.rules.stop_rules import TargetReached
from cargobike.search.spaces.space import Searchspace

SPACE = {"x": ("DOUBLE", [0.0, 1.0])}


def train(x: float) -> float:
    return x


def _resolve(asked: Asked, **objects: Any) -> Setup:
    objects = {"train": train, "engine": "local", **objects}
    with LocalEngine() as engine:
        setup, _ = resolve(asked, Objects(**objects), engine)
    return setup


def test_what_was_left_open_is_filled_in() -> None:
    asked = _resolve(Asked(placement=Placement(workers=3)), space={"x": [1, 2]}).asked
    assert (asked.name, asked.function) == ("train", "test_resolving:train")
    assert asked.search.optimizer == Named("gridsearch", settings={"counts": {}})
    assert asked.search.num_trials == 2
    assert isinstance(asked.search.seed, int)
    assert asked.search.space == [{"name": "x", "type": "DISCRETE", "values": [1, 2]}]
    assert asked.aim.direction == "max"
    assert (asked.placement.workers, asked.placement.gang.size, asked.placement.engine) == (2, 1, "local")


def test_a_space_without_an_optimizer_is_searched_by_a_model_that_stops_no_trial() -> None:
    setup = _resolve(Asked(search=Search(num_trials=4)), space=Searchspace(x=("DOUBLE", [0, 1])))
    assert isinstance(setup.optimizer, Auto)
    assert setup.asked.search.optimizer == Named(
        "auto", settings={"num_trials": None, "searchspace": None, "stops_trials": False}
    )
    assert not setup.judged_by_reports


def test_what_was_said_stays_as_it_was_said(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.touch()
    given = Asked(
        name="mine",
        description="words",
        search=Search(num_trials=5, seed=7, deterministic=True),
        aim=Aim(direction="min", metric="loss", constraints=("cost<=1",)),
        placement=Placement(workers=2, gang=Gang(size=2)),
        limits=Limits(timeout_s=9.0, trial_timeout_s=8.0, stall_timeout_s=7.0, max_failures=6),
        keeping=Keeping(durability="power", working_directory="launch", tensorboard=True),
    )
    setup = _resolve(
        given,
        space=SPACE,
        optimizer=ASHA(reduction_factor=4),
        early_stop=["median", TargetReached(0.5)],
        start_points=[{"x": 1}],
        versioned_resources=[file],
    )
    asked = setup.asked
    assert (asked.name, asked.description, asked.limits) == (given.name, given.description, given.limits)
    assert (asked.search.num_trials, asked.search.seed, asked.search.deterministic) == (5, 7, True)
    assert asked.aim == Aim(direction="min", metric="loss", constraints=("cost <= 1",))
    assert asked.placement.gang == Gang(size=2, is_distributed=True)
    assert asked.keeping.versioned_resources == (str(file),)
    assert asked.search.start_points == setup.start_points == ({"x": 1.0},)
    assert asked.search.optimizer is not None
    assert asked.search.optimizer.settings["reduction_factor"] == 4
    assert [rule.name for rule in asked.search.stop_rules] == ["median", "target"]
    plan = setup.plan()
    assert (plan.workers, plan.gang, plan.timeout_s, plan.max_failures) == (2, 2, 9.0, 6)
    assert plan.every_report_is_milestone
    assert plan.reason_to_end is not None


def test_several_objectives_leave_no_metric_and_no_direction_of_their_own() -> None:
    aim = Aim(objectives={"a": "max", "b": "min"}, constraints=("cost <= 0.1234567891",))
    asked = _resolve(Asked(aim=aim, search=Search(num_trials=3)), space=SPACE).asked
    assert (asked.aim.direction, asked.aim.metric) == ("max", None)
    assert asked.aim.objectives == {"a": "max", "b": "min"}
    assert asked.aim.goals.constraints[0].bound == 0.1234567891


def test_one_set_of_parameters_is_a_single_run() -> None:
    setup = _resolve(Asked(search=Search(params={"x": 2.0})))
    assert isinstance(setup.optimizer, Listed)
    assert setup.asked.search.optimizer == Named("listed")
    assert setup.asked.search.num_trials == 1
    assert setup.plan().fail_fast == 0


@pytest.mark.parametrize(
    ("asked", "objects", "words"),
    [
        (Asked(), {"space": SPACE}, "how long to search"),
        (Asked(search=Search(params={"x": 1})), {"optimizer": "tpe"}, "listed already"),
        (Asked(placement=Placement(gang=Gang(size=0))), {"space": {"x": [1]}}, "gang must be a whole number"),
        (Asked(aim=Aim(direction="up")), {"space": {"x": [1]}}, "direction='up'"),  # type: ignore[arg-type]
        (Asked(aim=Aim(objectives={"a": "max"})), {"space": {"x": [1]}}, "give at least two"),
        (Asked(), {"space": {"x": [1]}, "start_points": [{"x": 1}]}, "listed already"),
        (Asked(), {"space": {"x": [1]}, "versioned_resources": "a.csv"}, "must be a list of paths"),
        (Asked(), {"space": {"x": [1]}, "callbacks": [3]}, "no method on_facts"),
    ],
)
def test_what_cannot_be_had_is_refused(asked: Asked, objects: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        _resolve(asked, **objects)


def test_ranks_need_processes_of_their_own() -> None:
    asked = Asked(placement=Placement(workers=2, gang=Gang(size=2), isolation="reuse"))
    with pytest.raises(InvalidInputError, match="processes of their own"):
        _resolve(asked, space={"x": [1]})


def test_gangs_are_asked_for_by_numbers_or_roles() -> None:
    assert gang_of((2, 8), None) == Gang(size=8, least=2, is_distributed=True)
    assert gang_of(None, {"worker": 2, "chief": 1}).roles == ("chief", "worker", "worker")
    servers = gang_with_servers(2, 1, {"staleness": 8})
    assert (servers.servers, servers.options) == (1, {"staleness": 8})


def test_the_payload_says_what_a_worker_must_know_of_what_was_asked() -> None:
    asked = Asked(
        search=Search(params={"x": 1.0}),
        aim=Aim(metric="loss", constraints=("cost <= 1",)),
        placement=Placement(workers=1, gang=gang_with_servers(1, 1, {"staleness": 8})),
        keeping=Keeping(durability="power", working_directory="launch"),
    )
    with LocalEngine() as engine:
        setup, function = resolve(asked, Objects(train=train, engine="local"), engine)
    payload = make_payload(setup.asked, ship(function))
    assert (payload.metric, payload.needed_metrics, payload.value_is_optional) == ("loss", ["cost"], True)
    assert (payload.own_directory, payload.force_checkpoints_every_s) == (False, 0.0)
    assert (payload.server, payload.options) == (PARAMETER_SERVER, {"staleness": 8})
    assert payload.load()(3.0) == 3.0


def test_a_registered_optimizer_needs_no_pickle() -> None:
    setup = _resolve(Asked(search=Search(num_trials=3)), space=SPACE, optimizer="asha", early_stop="patience")
    assert [name for name, data in recipe_files(setup).items() if data is not None] == ["recipe.json"]


def test_an_engine_is_given_by_name_or_as_an_object() -> None:
    engine = LocalEngine()
    assert engine_of(engine) is engine
    with pytest.raises(InvalidInputError, match="no engine 'lokal'"):
        engine_of("lokal")
