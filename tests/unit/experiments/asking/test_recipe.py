"""How an experiment was set up: written as data, read back, and read as it was kept before."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cargobike import experiment
from cargobike.core.asked import Aim, Asked, Gang, Limits, Named, Placement, Search
from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import Curve, Decision, Direction, Trial, TrialState
from cargobike.experiments.asking.recipe import OBJECTS, RECIPE, asked_for, read_recipe, recipe_files
from cargobike.experiments.asking.setup import Setup
from cargobike.experiments.trial.payload import Payload
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.optimizers.registry import describe_optimizer
from cargobike.search.rules.stop_rules import MedianRule, TargetReached, describe_stop_rule
from cargobike.search.spaces.space import Searchspace
from cargobike.store.journal.journal import read_journal

PAST = Path(__file__).parent / "past"
SPACE = Searchspace(x=("DOUBLE", [0.0, 1.0]), shape=[(1, 2), (3,)])


class OwnRule:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        return Decision.CONTINUE


class Own(AbstractOptimizer):
    def __init__(self, source: Any) -> None:
        self.source = source

    def initialize(self) -> None: ...

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return None


def _setup(optimizer: AbstractOptimizer, *rules: Any, **search: Any) -> Setup:
    asked = Asked(
        name="n",
        search=Search(
            space=SPACE.describe(),
            optimizer=describe_optimizer(optimizer),
            stop_rules=tuple(map(describe_stop_rule, rules)),
            num_trials=4,
            seed=3,
            **search,
        ),
        aim=Aim(direction="min", metric="loss", constraints=("cost <= 0.1234567891",)),
        placement=Placement(workers=4, gang=Gang(size=2, least=1, is_distributed=True), engine="local"),
        limits=Limits(timeout_s=60.0, trial_timeout_s=5.0, stall_timeout_s=7.0, max_failures=2),
    )
    return Setup(asked=asked, space=SPACE, names=("x", "shape"), optimizer=optimizer, stop_rules=rules)


def _write(folder: Path, setup: Setup) -> list[str]:
    files = {name: data for name, data in recipe_files(setup).items() if data is not None}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return sorted(files)


def test_what_is_data_comes_back_without_a_pickle(tmp_path: Path) -> None:
    setup = _setup(ASHA(reduction_factor=4, resource_max=3), MedianRule(interval=2), TargetReached(0.5))
    assert _write(tmp_path, setup) == [RECIPE]
    again = read_recipe(tmp_path)
    assert (again.asked, again.space, again.names) == (setup.asked, setup.space, setup.names)
    assert describe_optimizer(again.optimizer) == describe_optimizer(setup.optimizer)
    assert [vars(rule) for rule in again.stop_rules] == [vars(rule) for rule in setup.stop_rules]


def test_the_plan_is_the_same_again(tmp_path: Path) -> None:
    setup = _setup(ASHA(), TargetReached(0.5))
    _write(tmp_path, setup)
    plans = [each.plan() for each in (setup, read_recipe(tmp_path))]
    assert all(plan.reason_to_end is not None for plan in plans)
    first, second = (msgspec.structs.replace(plan, reason_to_end=None) for plan in plans)
    assert first == second
    assert (first.workers, first.gang, first.least_gang, first.timeout_s, first.max_failures) == (4, 2, 1, 60.0, 2)


def test_points_and_earlier_trials_come_back_as_the_space_has_them(tmp_path: Path) -> None:
    curve = Curve()
    curve.add(1, 0.5)
    curve.add(2, math.nan)
    past = Trial(
        {"x": 0.25, "shape": (1, 2)}, state=TrialState.STOPPED, metrics={"loss": math.inf}, curve=curve, violation=0.5
    )
    points = ({"x": 0.5, "shape": (3,)},)
    setup = msgspec.structs.replace(_setup(ASHA()), start_points=points, past=(past,))
    _write(tmp_path, setup)
    again = read_recipe(tmp_path)
    assert again.start_points == points
    assert again.past == (past,)


def test_a_single_run_needs_no_more_than_its_parameters(tmp_path: Path) -> None:
    asked = Asked(search=Search(params={"x": 1.5}, optimizer=Named("listed"), num_trials=1))
    setup = Setup(asked=asked, space=Searchspace(), names=("x",), optimizer=Listed([{"x": 1.5}]))
    assert _write(tmp_path, setup) == [RECIPE]
    again = read_recipe(tmp_path).optimizer
    assert isinstance(again, Listed)
    assert again.params == [{"x": 1.5}]


def test_objects_that_are_not_data_have_a_pickle_of_their_own(tmp_path: Path) -> None:
    setup = _setup(Own({1, 2}), MedianRule(), OwnRule(4))
    assert _write(tmp_path, setup) == [OBJECTS, RECIPE]
    again = read_recipe(tmp_path)
    assert isinstance(again.optimizer, Own)
    assert again.optimizer.source == {1, 2}
    median, own = again.stop_rules
    assert isinstance(median, MedianRule)
    assert isinstance(own, OwnRule)
    assert own.limit == 4
    assert b"MedianRule" not in (tmp_path / OBJECTS).read_bytes()


def test_an_optimizer_that_cannot_be_pickled_keeps_nobody_from_running(tmp_path: Path) -> None:
    assert _write(tmp_path, _setup(Own(number for number in range(3)))) == [RECIPE]
    with pytest.raises(StoreError, match="could not be kept"):
        read_recipe(tmp_path)


def test_recipes_that_cannot_be_followed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no recipe"):
        read_recipe(tmp_path)
    _write(tmp_path, _setup(ASHA()))
    text = (tmp_path / RECIPE).read_text()
    (tmp_path / RECIPE).write_text(text.replace('"reduction_factor"', '"gone"'))
    with pytest.raises(StoreError, match="cannot be followed: the optimizer asha"):
        read_recipe(tmp_path)
    (tmp_path / RECIPE).write_text(text.replace('{"version":1', '{"version":9'))
    with pytest.raises(StoreError, match="newer Cargobike"):
        read_recipe(tmp_path)
    (tmp_path / RECIPE).write_text(text[:50])
    with pytest.raises(StoreError, match="cannot be read"):
        read_recipe(tmp_path)


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment with a pickled recipe, whose driver died in the middle, as the version before has left it."""
    header = next(iter(read_journal(PAST / "asha" / "journal.jsonl", EXPERIMENT_FACTS)))
    assert isinstance(header, ExperimentStarted)
    folder = ProjectFolder(tmp_path).experiment(header.id)
    shutil.copytree(PAST / "asha", folder.root)
    payload = Payload.decode((folder.code / "payload.msgpack").read_bytes())
    here = msgspec.structs.replace(payload, sys_path=[str(PAST)], launch_dir=str(tmp_path))
    (folder.code / "payload.msgpack").write_bytes(here.encode())
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path))
    return header.id


def test_a_pickled_recipe_tells_everything_that_was_asked_for(past: str, tmp_path: Path) -> None:
    folder = ProjectFolder(tmp_path).experiment(past)
    header = next(iter(read_journal(folder.journal, EXPERIMENT_FACTS)))
    assert isinstance(header, ExperimentStarted)
    asked = asked_for(header, folder)
    assert (asked.name, asked.function) == ("train", "past_function.py:train")
    assert asked.search.optimizer is not None
    assert asked.search.optimizer.settings["resource_max"] == 9
    assert [rule.name for rule in asked.search.stop_rules] == ["median"]
    assert (asked.limits.timeout_s, asked.limits.stall_timeout_s) == (600.0, 600.0)
    (folder.code / "recipe.pickle").write_bytes(b"damaged")
    assert asked_for(header, folder) == header.asked


def test_an_experiment_with_a_pickled_recipe_is_taken_up_again(past: str) -> None:
    result = experiment.resume(past, quiet=True)
    assert result.state == "completed"
    assert len(result.trials) == 6
    assert result.best is not None


def test_trials_of_an_experiment_with_a_pickled_recipe_are_repeated(past: str) -> None:
    repeated = experiment.reproduce(past, trial=0, quiet=True)
    assert repeated.is_same
