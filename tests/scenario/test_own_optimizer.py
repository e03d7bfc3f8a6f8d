"""An optimizer of the user's own, written and launched the way its users know."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from cargobike import IDLE, AbstractOptimizer, Searchspace, Suggestion, Trial, experiment, trial
from cargobike.core.errors import ExperimentFailedError, InvalidInputError
from cargobike.core.records import Decision
from support.trains import parabola


class RandomSearch(AbstractOptimizer):
    def __init__(self, num_trials: int, searchspace: Searchspace) -> None:
        self.num_trials = num_trials
        self.searchspace = searchspace
        self.finalized: list[Trial] = []

    def initialize(self) -> None:
        self.config_buffer = [{"x": random.Random(number).uniform(0, 5)} for number in range(self.num_trials or 0)]

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        return Trial(self.config_buffer.pop()) if self.config_buffer else None

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        self.finalized = list(trials)

    def early_check(self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: str) -> list[Trial]:
        return []


def test_the_four_methods_are_enough() -> None:
    sp = Searchspace(x=("DOUBLE", [0, 5]))
    rs = RandomSearch(5, sp)
    result = experiment.launch(parabola, sp, optimizer=rs, num_trials=5, name="test", direction="max", quiet=True)
    assert (result.name, result.counts) == ("test", {"completed": 5})
    assert sorted(trial.params["x"] for trial in result.trials) == sorted(
        random.Random(number).uniform(0, 5) for number in range(5)
    )
    assert result.best is not None
    assert result.best.metric == max(trial.value or -99.0 for trial in result.trials)
    assert [trial.value for trial in rs.finalized] == [trial.value for trial in result.trials]


class _StopsAt(AbstractOptimizer):
    """Stops every trial with an odd number at a step that depends on its number."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.seen: list[tuple[int, int]] = []
        self.observed: list[tuple[int, str, float | None]] = []

    def initialize(self) -> None:
        self.left = list(range(self.count))

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        return {"x": self.left.pop(0)} if self.left else None

    def observe(self, trial: Trial) -> None:
        self.observed.append((trial.number, trial.state.value, trial.value))

    def early_check(self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: str) -> list[Trial]:
        [running] = to_check
        step = running.curve.steps[-1]
        self.seen.append((running.number, step))
        return [running] if running.number % 2 and step == running.number + 2 else []


def _steps(x: int) -> float:
    for step in range(20):
        trial.report(score=100 * x + step, step=step)
    return float(x)


def test_a_stop_takes_effect_at_exactly_the_step_it_was_decided_on() -> None:
    optimizer = _StopsAt(6)

    def train(x: int) -> float:
        try:
            return _steps(x)
        finally:
            print(f"left at {trial.number}")

    result = experiment.launch(train, Searchspace(x=("INTEGER", [0, 9])), optimizer=optimizer, num_trials=6, quiet=True)
    assert len(result.trials) == 6
    for ended in result.trials:
        was_stopped = ended.number % 2 == 1
        assert ended.state == ("stopped" if was_stopped else "completed")
        assert ended.value == (None if was_stopped else float(ended.number))
        last = ended.number + 2 if was_stopped else 19
        assert list(ended.curve.steps) == list(range(last + 1))
        assert result.logs(ended) == f"left at {ended.number}\n"
    assert result.best is not None
    assert result.best.number == 4
    assert sorted(optimizer.observed) == [(t.number, t.state.value, t.value) for t in result.trials]
    judged = [
        json.loads(line) for line in (result.folder / "journal.jsonl").read_text().splitlines() if '"judged"' in line
    ]
    stops = {fact["trial"]: fact["step"] for fact in judged if fact["decision"] == "stop"}
    assert stops == {1: 3, 3: 5, 5: 7}


def test_a_stop_rule_works_beside_any_optimizer() -> None:
    class Below:
        def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: str) -> Decision:
            return Decision.STOP if step == 4 and trial.params["x"] < 2 else Decision.CONTINUE

    result = experiment.launch(_steps, {"x": [0, 1, 2, 3]}, early_stop=Below(), quiet=True)
    assert [ended.state.value for ended in result.trials] == ["stopped", "stopped", "completed", "completed"]
    assert [len(ended.curve) for ended in result.trials] == [5, 5, 20, 20]


def test_stopped_trials_never_win_even_with_the_best_numbers() -> None:
    class StopTheBest:
        def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: str) -> Decision:
            return Decision.STOP if trial.params["x"] == 3 else Decision.CONTINUE

    result = experiment.launch(_steps, {"x": [1, 3]}, early_stop=[StopTheBest()], quiet=True)
    assert result.best is not None
    assert result.best.params == {"x": 1}


class _Idles(AbstractOptimizer):
    """Has one suggestion at a time, and needs the value of the last one for the next."""

    def initialize(self) -> None:
        self.asked_when_idle = 0

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        if len(self.trials) > len(self.final_store):
            self.asked_when_idle += 1
            return IDLE
        if len(self.final_store) == 4:
            return None
        best = max((float(trial.value or 0) for trial in self.final_store), default=0.0)
        return {"x": best + 1}


def test_an_optimizer_that_waits_for_results_gets_them() -> None:
    optimizer = _Idles()
    result = experiment.launch(
        lambda x: x, Searchspace(x=("DOUBLE", [0, 9])), optimizer=optimizer, num_trials=10, workers=2, quiet=True
    )
    assert [trial.value for trial in result.trials] == [1.0, 2.0, 3.0, 4.0]
    assert optimizer.asked_when_idle > 0


class _Halving(AbstractOptimizer):
    """Pauses every trial at step 2 and resumes the better half of them."""

    def initialize(self) -> None:
        self.left = [1.0, 2.0, 3.0, 4.0]
        self.waiting: dict[int, float] = {}
        self.resumed: set[int] = set()

    def observe(self, trial: Trial) -> None:
        if not trial.state.is_final:
            self.waiting[trial.number] = trial.curve.values[-1]

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        if self.left:
            return Suggestion(params={"x": self.left.pop(0)}, milestones=(2,))
        if len(self.waiting) < 4:
            return IDLE
        for number in sorted(self.waiting, key=lambda number: self.waiting[number], reverse=True)[:2]:
            if not self.trials[number].state.is_final and number not in self.resumed:
                self.resumed.add(number)
                return Suggestion(resume=number)
        return None

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        return Decision.PAUSE if trial.number not in self.waiting else Decision.CONTINUE


def test_paused_trials_go_on_from_their_checkpoints() -> None:
    def train(x: float) -> float:
        for step in range(trial.checkpoint.load(0), 5):
            trial.checkpoint.save(step + 1)
            trial.report(score=x * step, step=step)
        return x

    result = experiment.launch(
        train, Searchspace(x=("DOUBLE", [0, 9])), optimizer=_Halving(), num_trials=4, workers=2, quiet=True
    )
    assert [ended.state.value for ended in result.trials] == ["stopped", "stopped", "completed", "completed"]
    assert [len(ended.curve) for ended in result.trials] == [3, 3, 5, 5]
    assert [ended.attempts for ended in result.trials] == [1, 1, 2, 2]


class _Broken(AbstractOptimizer):
    def __init__(self, answer: Any, broken_in: str = "") -> None:
        self.answer = answer
        self.broken_in = broken_in

    def _break(self, where: str) -> None:
        if where == self.broken_in:
            raise ZeroDivisionError(f"broken in {where}")

    def initialize(self) -> None:
        self._break("initialize")

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        self._break("get_suggestion")
        return self.answer

    def observe(self, trial: Trial) -> None:
        self._break("observe")

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        self._break("finalize_experiment")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(5, r"returned 5 \(int\); allowed are", id="number"),
        pytest.param({"lr": 1}, r"unknown parameters \['lr'\]", id="unknown name"),
        pytest.param({"x": object()}, "plain data", id="object"),
    ],
)
def test_a_suggestion_that_is_none_ends_the_experiment_with_a_reason(answer: Any, message: str) -> None:
    with pytest.raises(ExperimentFailedError, match=message):
        experiment.launch(
            parabola, Searchspace(x=("DOUBLE", [0, 5])), optimizer=_Broken(answer), num_trials=3, quiet=True
        )


def _search_with(optimizer: AbstractOptimizer) -> Any:
    return experiment.launch(
        parabola, Searchspace(x=("DOUBLE", [0, 5])), optimizer=optimizer, num_trials=8, workers=1, quiet=True
    )


@pytest.mark.parametrize("place", ["get_suggestion", "observe"])
def test_an_optimizer_that_raises_is_shown_with_its_own_traceback(place: str) -> None:
    with pytest.raises(ExperimentFailedError, match=f"broken in {place}") as caught:
        _search_with(_Broken({"x": 1.0}, place))
    assert "in _break" in str(caught.value)
    assert "optimizer_session.py" not in str(caught.value)
    [only] = experiment.list()
    assert experiment.load(only) == caught.value.result
    assert experiment.load(only).state == "failed"


def test_an_optimizer_that_cannot_begin_starts_nothing() -> None:
    with pytest.raises(ZeroDivisionError, match="broken in initialize"):
        _search_with(_Broken({"x": 1.0}, "initialize"))
    assert experiment.list() == []


def test_an_optimizer_that_fails_at_the_very_end_is_shown_and_nothing_is_lost() -> None:
    with pytest.raises(ZeroDivisionError, match="broken in finalize_experiment"):
        _search_with(_Broken({"x": 1.0}, "finalize_experiment"))
    result = experiment.load("last")
    assert (result.state, result.counts) == ("completed", {"completed": 8})


def test_an_optimizer_needs_a_space_that_fits() -> None:
    with pytest.raises(InvalidInputError, match="'y' is given"):
        experiment.launch(parabola, Searchspace(y=("DOUBLE", [0, 5])), optimizer=_Broken(None), num_trials=3)
