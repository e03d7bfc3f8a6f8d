"""The contract of optimizers, held against ours, one that a user might write, and ones that break it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pytest

from cargobike.core.errors import OptimizerError, SpaceError
from cargobike.core.records import IDLE, Decision, Direction, Suggestion, Trial
from cargobike.search.optimizers.gridsearch import GridSearch
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.space import Searchspace, Spec
from cargobike.testing.optimizers import OptimizerContract, drive


class TestRandomSearch(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return RandomSearch()


class TestRandomSearchOfASmallSpace(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return RandomSearch()

    def make_space(self) -> Searchspace:
        return Searchspace(a=("INTEGER", [1, 3]), b=["x", "y"])


class TestGridSearch(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return GridSearch()


class TestListed(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return Listed(self.make_space().get_random_parameter_values(8, random.Random(1)))

    def make_space(self) -> Searchspace:
        """Both spaces are one with conditions, because a list fits only the space that it was made for."""
        return Searchspace({**super().make_space().to_dict(), "warmup": self.WARMUP})

    def make_conditional_space(self) -> Searchspace:
        return self.make_space()

    def make_constrained_space(self) -> Searchspace:
        return Searchspace(self.make_space().to_dict(), constraints=["layers <= 4"])

    WARMUP: ClassVar[Spec] = ("INTEGER", [1, 5], {"when": {"act": ["relu", None]}})

    def test_its_space_has_conditions_that_matter(self) -> None:
        """Otherwise the suite's own test of conditions would say nothing here."""
        assert {"warmup" in params for params in self.run().suggestions} == {True, False}


class Evolution(AbstractOptimizer):
    """As a user might write it: four methods and nothing else."""

    def initialize(self) -> None:
        self.open = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        if len(self.trials) < 4:
            return self.space.sample(self.rng)
        sign = 1 if self.direction == "max" else -1
        scored = [t for t in self.final_store if t.value is not None and t.value == t.value]
        if not scored:
            return Trial(self.space.sample(self.rng))
        best = max(scored, key=lambda t: sign * (t.value or 0.0))
        vector = self.space.to_unit(best.params)
        moved = [None if unit is None else unit + self.rng.gauss(0, 0.1) for unit in vector]
        return self.space.from_unit(moved)

    def early_check(self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: Direction) -> Iterable[Trial]:
        sign = 1 if direction == "max" else -1
        best = max((sign * value for t in trials for value in t.metric_history), default=0.0)
        return [t for t in to_check if len(t.curve) >= 2 and sign * t.metric_history[-1] < best - 1.0]

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        self.summary = len(trials)


class TestEvolution(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return Evolution()


class Halving(RandomSearch):
    """Pauses everything at its first report, and resumes the best that waits when nothing new is left."""

    judges_steps = True

    def initialize(self) -> None:
        super().initialize()
        self.waiting: list[int] = []

    def observe(self, trial: Trial) -> None:
        if trial.state == "paused":
            self.waiting.append(trial.number)

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        return Decision.PAUSE if step == 0 else Decision.CONTINUE

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        fresh = super().get_suggestion(trial)
        if fresh is not None:
            return fresh
        if not self.waiting:
            return None if all(t.state.is_final for t in self.trials.values()) else IDLE
        sign = 1 if self.direction == "max" else -1
        self.waiting.sort(key=lambda n: (sign * self.trials[n].metric_history[0], -n))
        return Suggestion(resume=self.waiting.pop())


class TestHalving(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return Halving()


# Each of these breaks one promise, and one test of the suite must say so.


class Synchronous(Halving):
    """Resumes nothing before everything has paused."""

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        new = len(self.trials) == self.num_trials
        if new and any(t.state in ("pending", "running") for t in self.trials.values()):
            return IDLE
        return super().get_suggestion(trial)


class Outside(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return {"lr": 5.0}


class Global(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        random.random()
        return super().get_suggestion(trial)


class Unseeded(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return self.space.sample(random.Random())


class OneSided(Evolution):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        direction, self.direction = self.direction, "max"
        try:
            return super().get_suggestion(trial)
        finally:
            self.direction = direction


class Waiting(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return IDLE if len(self.trials) == 2 else super().get_suggestion(trial)


class Undecided(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        self.asked = getattr(self, "asked", 0) + 1
        return None if self.asked == 3 else self.space.sample(self.rng)


class Meddling(RandomSearch):
    def observe(self, trial: Trial) -> None:
        trial.info["seen"] = True
        trial.params["lr"] = 0.1


class Trusting(RandomSearch):
    def observe(self, trial: Trial) -> None:
        assert trial.value is not None, "needs a value"


class Careless(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return {name: p.from_unit(0.5) for name, p in self.space.parameters.items()}


class Unconstrained(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        parameters = self.space.parameters.items()
        drawn = {name: p.from_unit(self.rng.random()) for name, p in parameters if not p.condition}
        if drawn.get("kind") == "tree":
            drawn["depth"] = 1
        return drawn


class Exotic(RandomSearch):
    def get_suggestion(self, trial: Trial | None = None) -> Any:
        return [self.space.sample(self.rng)]


@pytest.mark.parametrize(
    ("broken", "test", "message"),
    [
        (Outside, "test_suggestions_lie_in_the_space", r"lr: 5.0 is outside"),
        (Global, "test_global_randomness_is_left_alone", "global state of `random` was changed"),
        (Unseeded, "test_same_seed_same_suggestions", "the same seed gave other suggestions"),
        (OneSided, "test_minimizing_is_maximizing_the_negated", "min and max of the negated differ"),
        (Waiting, "test_all_trials_asked_for_are_suggested", "IDLE while nothing runs, after 2 trials"),
        (Undecided, "test_after_none_comes_none", "it said None and then suggested"),
        (Meddling, "test_suggestions_lie_in_the_space", "Meddling.observe changed a trial"),
        (Trusting, "test_failed_trials_are_tolerated", "needs a value"),
        (Trusting, "test_stopped_trials_are_tolerated", "needs a value"),
        (Synchronous, "test_trials_that_never_end_are_tolerated", "waited for some that never end"),
        (Careless, "test_conditions_are_respected_or_refused", "does not exist here, only when"),
        (Unconstrained, "test_constraints_are_kept_or_refused", "low < high: does not hold for low="),
        (Exotic, "test_one_trial_is_enough", "which is not a suggestion"),
    ],
)
def test_the_suite_notices(broken: type[AbstractOptimizer], test: str, message: str) -> None:
    class Suite(OptimizerContract):
        def make_optimizer(self) -> AbstractOptimizer:
            return broken()

    with pytest.raises((AssertionError, OptimizerError, SpaceError), match=message):
        getattr(Suite(), test)()


def test_resumed_trials_go_on_where_they_paused() -> None:
    space = Searchspace(a=("INTEGER", [1, 4]))
    result = drive(Halving(), lambda params: [0.0, float(params["a"])], space=space, num_trials=4, workers=2)
    assert sorted(trial.value or 0 for trial in result.trials) == [1, 2, 3, 4]
    assert all(trial.metric_history == [0.0, trial.value] for trial in result.trials)
    assert [answer[0] for answer in result.answers if isinstance(answer, tuple)] == ["resume"] * 4
    assert not result.stuck
