"""The contract of optimizers as a test suite: subclass it, say how to make yours, and run pytest.

from cargobike.testing.optimizers import OptimizerContract

class TestMine(OptimizerContract):
    def make_optimizer(self):
        return Mine()
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cargobike.core.errors import SpaceError
from cargobike.core.records import Params, Trial, TrialState
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import Drive, Fate, Objective, Outcome, drive

__all__ = ["Drive", "Fate", "OptimizerContract", "drive"]


class OptimizerContract:
    """What the driver relies on, in tests that every optimizer passes.

    Override `make_optimizer`, and `make_space`, `make_conditional_space` or `make_constrained_space` if the optimizer
    needs something special.
    """

    num_trials = 12
    """How many trials most tests ask for."""

    def make_optimizer(self) -> AbstractOptimizer:
        """Return a new optimizer."""
        raise NotImplementedError("say how your optimizer is made: def make_optimizer(self): return Mine()")

    def make_space(self) -> Searchspace:
        """Return a space that the optimizer must be able to search."""
        return Searchspace(
            lr=("DOUBLE", [1e-4, 1e-1], "log", {"points": 3}),
            momentum=("DOUBLE", [0.5, 0.99], "reverse-log", {"points": 3}),
            layers=("INTEGER", [1, 4]),
            dropout=("DOUBLE", [0.0, 0.5], {"step": 0.1}),
            batch=("DISCRETE", [32, 64, 128]),
            act=("CATEGORICAL", ["relu", "gelu", None]),
        )

    def make_conditional_space(self) -> Searchspace:
        """Return a space with conditions, which an optimizer may refuse with a `SpaceError`."""
        return Searchspace(
            optimizer=("CATEGORICAL", ["sgd", "adam"]),
            momentum=("DOUBLE", [0.0, 0.9], {"points": 3, "when": {"optimizer": "sgd"}}),
            nesterov=("CATEGORICAL", [True, False], {"when": {"optimizer": "sgd"}}),
            warmup=("INTEGER", [1, 5], {"when": {"nesterov": True}}),
        )

    def make_constrained_space(self) -> Searchspace:
        """Return a space with constraints between parameters, which an optimizer may refuse with a `SpaceError`."""
        return Searchspace(
            low=("INTEGER", [1, 9]),
            high=("INTEGER", [1, 9]),
            rate=("DOUBLE", [0.0, 1.0], {"points": 4}),
            kind=("CATEGORICAL", ["tree", "line"]),
            depth=("INTEGER", [1, 9], {"when": {"kind": "tree"}}),
            constraints=["low < high", "rate * high <= 4.5", "kind == 'line' or depth <= low"],
        )

    def objective(self, params: Params) -> float:
        """Score parameters; deterministic, and best in one place of the space."""
        units = [unit for unit in self.make_space().to_unit(params) if unit is not None]
        return -sum((unit - 0.3) ** 2 for unit in units)

    def run(
        self,
        objective: Objective | None = None,
        *,
        direction: str = "max",
        seed: int = 7,
        workers: int = 1,
        order_seed: int = 0,
    ) -> Drive:
        """Run a new optimizer on `make_space`, and make sure that it does not wait for nothing."""
        result = drive(
            self.make_optimizer(),
            objective or self.objective,
            space=self.make_space(),
            num_trials=self.num_trials,
            direction="max" if direction == "max" else "min",
            seed=seed,
            workers=workers,
            order_seed=order_seed,
        )
        assert result.trials, "no trial was suggested at all"
        assert not result.stuck, f"IDLE while nothing runs, after {len(result.trials)} trials: it would wait forever"
        return result

    def test_suggestions_lie_in_the_space(self) -> None:
        """Every suggestion is a point of the space, for any number of workers."""
        space = self.make_space()
        for workers in (1, 4):
            for params in self.run(workers=workers).suggestions:
                space.validate(params)

    def test_suggestions_survive_a_journal(self) -> None:
        """Parameters are plain data: written as JSON and read again they mean the same."""
        space = self.make_space()
        for params in self.run().suggestions:
            assert space.validate(json.loads(json.dumps(params))) == space.validate(params)

    def test_all_trials_asked_for_are_suggested(self) -> None:
        """`num_trials` is reached, unless the optimizer says that there is nothing any more."""
        for workers in (1, 3):
            result = self.run(workers=workers)
            assert len(result.trials) <= self.num_trials
            assert result.exhausted or len(result.trials) == self.num_trials, "it neither went on nor said None"

    def test_one_trial_is_enough(self) -> None:
        """An experiment with a single trial, and one without a limit, work."""
        space = self.make_space()
        one = drive(self.make_optimizer(), self.objective, space=space, num_trials=1)
        assert len(one.trials) == 1
        open_end = drive(self.make_optimizer(), self.objective, space=space, num_trials=None, at_most=20)
        assert open_end.trials
        assert not open_end.stuck

    def test_after_none_comes_none(self) -> None:
        """Who said that there is nothing any more does not change their mind."""
        optimizer = self.make_optimizer()
        result = drive(optimizer, self.objective, space=self.make_space(), num_trials=self.num_trials)
        if result.exhausted:
            later = [optimizer.get_suggestion() for _ in range(3)]
            assert later == [None] * 3, f"it said None and then suggested {later}"

    def test_same_seed_same_suggestions(self) -> None:
        """Two optimizers with the same seed that see the same say the same."""
        for workers in (1, 4):
            first, second = (self.run(workers=workers, order_seed=3) for _ in range(2))
            assert first.answers == second.answers, "the same seed gave other suggestions; use only self.rng"

    def test_minimizing_is_maximizing_the_negated(self) -> None:
        """Direction and sign cancel out."""
        for workers in (1, 3):
            up = self.run(workers=workers)
            down = self.run(lambda params: -self.objective(params), direction="min", workers=workers)
            assert up.answers == down.answers, "min and max of the negated differ; look at self.direction"
            curve_up = self.run(self._curve, workers=workers)
            curve_down = self.run(
                lambda params: [-value for value in self._curve(params)], direction="min", workers=workers
            )
            assert curve_up.answers == curve_down.answers, "min and max of the negated differ with curves"
            assert [trial.state for trial in curve_up.trials] == [trial.state for trial in curve_down.trials]

    def test_results_may_come_late_and_out_of_order(self) -> None:
        """Trials of several workers end in any order."""
        for order_seed in range(5):
            self.run(workers=5, order_seed=order_seed)
            self.run(self._curve, workers=5, order_seed=order_seed)

    def test_earlier_experiments_can_be_learned_from(self) -> None:
        """Trials of another experiment are learned from, alike in both directions, and do not count as this one's."""
        space = self.make_space()
        runs: list[Drive] = []
        for direction, sign in (("max", 1.0), ("min", -1.0)):
            past = self._past(sign)
            before = [copy.deepcopy(trial) for trial in past]
            result = drive(
                self.make_optimizer(),
                lambda params, sign=sign: sign * self.objective(params),  # type: ignore[misc]
                space=space,
                num_trials=self.num_trials,
                direction="max" if direction == "max" else "min",
                seed=7,
                workers=2,
                past=past,
            )
            assert past == before, "it changed a trial that it was shown"
            assert result.trials
            assert not result.stuck
            assert result.exhausted or len(result.trials) == self.num_trials
            for params in result.suggestions:
                space.validate(params)
            runs.append(result)
        assert runs[0].answers == runs[1].answers, "min and max of the negated differ after a warm start"

    def _past(self, sign: float) -> list[Trial]:
        """Return completed and stopped trials of an earlier experiment, some with curves."""
        rng = random.Random(5)
        past = []
        for number in range(9):
            params = self.make_space().sample(rng)
            trial = Trial(params, state=TrialState.COMPLETED, value=sign * self.objective(params))
            if number % 3 == 0:
                trial = Trial(params, state=TrialState.STOPPED)
            if number % 2 == 0:
                for step, value in enumerate(self._curve(params)[: 2 if trial.value is None else None]):
                    trial.curve.add(step, sign * value)
            past.append(trial)
        return past

    def test_failed_trials_are_tolerated(self) -> None:
        """Some fail, or all do."""
        result = self.run(self._every_third(_fail), workers=2)
        assert any(trial.state is TrialState.FAILED for trial in result.trials[:3])
        self.run(lambda params: _fail())

    def test_stopped_trials_are_tolerated(self) -> None:
        """Some are stopped from outside, or all are; a stopped trial has no value."""
        self.run(self._every_third(lambda: Fate.STOPPED), workers=2)
        self.run(lambda params: Fate.STOPPED)

    def test_trials_that_never_end_are_tolerated(self) -> None:
        """A worker that is lost in a trial does not hold up the others, with or without learning curves."""
        for score in (self.objective, self._curve):
            result = self.run(self._every_third(lambda: Fate.NEVER_ENDS, score), workers=6)
            ended = any(trial.state is TrialState.COMPLETED for trial in result.trials)
            assert ended, "no trial was completed: all of them waited for some that never end"

    def test_nan_and_infinities_are_tolerated(self) -> None:
        """A score may be anything that a float can be."""
        for strange in (float("nan"), float("inf"), float("-inf")):
            self.run(self._every_third(lambda strange=strange: strange), workers=2)  # type: ignore[misc]
            self.run(lambda params, strange=strange: strange)  # type: ignore[misc]

    def test_global_randomness_is_left_alone(self) -> None:
        """Only `self.rng` is used: the global sources of `random` and NumPy stay as they are."""
        with _untouched_randomness():
            self.run(workers=2)

    def test_conditions_are_respected_or_refused(self) -> None:
        """A space with conditions is searched correctly, or refused with a `SpaceError`."""
        space = self.make_conditional_space()
        try:
            result = drive(
                self.make_optimizer(),
                lambda params: float(len(params)),
                space=space,
                num_trials=self.num_trials,
                workers=2,
            )
        except SpaceError:
            return
        for params in result.suggestions:
            space.validate(params)

    def test_constraints_are_kept_or_refused(self) -> None:
        """Every suggestion keeps the constraints, where the best lies outside of them too; or the space is refused."""
        space = self.make_constrained_space()

        def score(params: Params) -> float:
            return float(sum(value for value in params.values() if isinstance(value, int | float)))

        for objective in (score, lambda params: [score(params) * (1 - 0.5**step) for step in range(1, 6)]):
            try:
                result = drive(
                    self.make_optimizer(), objective, space=space, num_trials=self.num_trials + 4, workers=2, seed=3
                )
            except SpaceError:
                return
            assert result.trials
            for params in result.suggestions:
                space.validate(params)

    def _curve(self, params: Params) -> list[float]:
        score = self.objective(params)
        return [score * (1 - 0.5**step) for step in range(1, 6)]

    def _every_third(self, fate: Callable[[], Outcome], otherwise: Objective | None = None) -> Objective:
        calls = 0

        def objective(params: Params) -> Outcome:
            nonlocal calls
            calls += 1
            return fate() if calls % 3 == 1 else (otherwise or self.objective)(params)

        return objective


def _fail() -> float:
    raise RuntimeError("this trial fails on purpose")


@contextmanager
def _untouched_randomness() -> Iterator[None]:
    numpy = sys.modules.get("numpy")
    before = random.getstate()
    numpy_before = repr(numpy.random.get_state(legacy=False)) if numpy is not None else ""
    yield
    assert random.getstate() == before, "the global state of `random` was changed; use self.rng"
    numpy_after = repr(numpy.random.get_state(legacy=False)) if numpy is not None else ""
    assert numpy_after == numpy_before, "the global state of numpy.random was changed; use self.rng"
