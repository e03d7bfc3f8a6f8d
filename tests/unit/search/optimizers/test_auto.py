"""Auto chooses by what it sees, says so, and searches as well as what it chose."""

from __future__ import annotations

import logging
import random
import statistics

import pytest

from cargobike.core.records import Decision, Direction, Params, Suggestion, Trial, TrialState
from cargobike.experiments.scheduling.simulation import SimulatedRun, simulate
from cargobike.search.optimizers.auto import Auto
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import drive
from support.functions import PLANE, branin, typical_best

GRID = Searchspace(a=("INTEGER", [1, 3]), b=["x", "y"])


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="cargobike.search.optimizers.auto")


def test_a_small_space_is_tried_whole(caplog: pytest.LogCaptureFixture) -> None:
    result = drive(Auto(), lambda params: params["a"], space=GRID, num_trials=10, workers=2)
    assert len({tuple(params.items()) for params in result.suggestions}) == len(result.trials) == 6
    assert result.exhausted
    assert {trial.info["auto"] for trial in result.trials} == {"sobol"}
    assert "auto chose sobol: all 6 combinations fit into 10 trials" in caplog.text


def test_a_small_space_and_a_smaller_budget_take_a_model() -> None:
    result = drive(Auto(), lambda params: params["a"], space=GRID, num_trials=5)
    assert result.trials[0].info["auto"] == "model"


def test_a_function_that_does_not_report_is_searched_by_a_model(caplog: pytest.LogCaptureFixture) -> None:
    ours = typical_best(Auto, branin, PLANE, 50)
    assert ours < typical_best(RandomSearch, branin, PLANE, 50) / 2
    assert "auto chose gaussian: the function does not report, and its parameters are all continuous" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_choices_are_left_to_densities(caplog: pytest.LogCaptureFixture) -> None:
    space = Searchspace(x=("DOUBLE", [0, 1]), kind=["a", "b", "c"])
    result = drive(Auto(), lambda params: params["x"] + (params["kind"] == "b"), space=space, num_trials=30, seed=1)
    assert result.trials[-1].info["auto"] == "tpe"
    assert "auto chose tpe: the function does not report, and not all of its parameters" in caplog.text
    assert sum(trial.params["kind"] == "b" for trial in result.trials[15:]) > 10


def test_a_space_too_large_to_try_whole_without_halving_is_halved() -> None:
    space = Searchspace(a=("INTEGER", [1, 10]), b=("INTEGER", [1, 10]))

    def rising(params: Params) -> list[float]:
        return [params["a"] + params["b"] - 1 / epoch for epoch in range(1, 28)]

    result = drive(Auto(), rising, space=space, num_trials=100, workers=2, seed=1)
    assert len(result.trials) == 100
    assert sum(trial.state is TrialState.STOPPED for trial in result.trials) > 50


def first_milestones(optimizer: Auto, count: int) -> list[int | None]:
    found: list[int | None] = []
    for _ in range(count):
        answer = optimizer.get_suggestion()
        assert isinstance(answer, Suggestion)
        found.append(min(map(int, answer.milestones), default=None))
        optimizer.trials[len(optimizer.trials)] = Trial(answer.params, number=len(optimizer.trials), info=answer.info)
    return found


def ended(number: int, info: dict[str, object], early: float, late: float) -> Trial:
    """Return a trial of 81 steps that stands at one score for 30 of them, and at another one from there on."""
    trial = Trial({"x": number / 10 - 5, "y": 1.0}, number=number, state=TrialState.COMPLETED, info=info, value=late)
    for step in range(1, 82):
        trial.curve.add(step, early if step <= 30 else late)
    return trial


def test_the_first_four_and_one_trial_in_eleven_are_compared_late() -> None:
    optimizer = Auto()
    optimizer.setup(PLANE, num_trials=None, direction="min", seed=0)
    optimizer.initialize()
    # It is not known yet whether steps count from 0 or from 1, so that level n may mean step n - 1.
    assert first_milestones(optimizer, 22) == [None] * 4 + [0] * 6 + [8] + [0] * 10 + [2]


def test_of_those_that_are_compared_late_some_never_are() -> None:
    optimizer = Auto()
    optimizer.setup(PLANE, num_trials=None, direction="min", seed=0)
    optimizer.initialize()
    assert first_milestones(optimizer, 1) == [None]
    optimizer.observe(ended(0, optimizer.trials[0].info, 1.0, 1.0))
    first = first_milestones(optimizer, 43)
    # Trained for 81 steps: late is from 27 on.
    assert [index for index, step in enumerate(first) if step != 1] == [0, 1, 2, 9, 20, 31, 42]
    assert [first[index] for index in (9, 20, 31, 42)] == [None, 27, 27, None]


def test_of_few_trials_one_in_eight_is_never_compared() -> None:
    optimizer = Auto()
    optimizer.setup(PLANE, num_trials=16, direction="min", seed=0)
    optimizer.initialize()
    assert first_milestones(optimizer, 4) == [None] * 2 + [0] * 2


def at_the_second_rung(optimizer: Auto, number: int, loss: float, sign: float) -> Decision:
    """Return what becomes of a trial that can be resumed and comes to the second rung without having fallen."""
    trial = Trial({"x": 1.0, "y": 1.0}, number=number, info=optimizer.trials[number].info, has_checkpoint=True)
    for step in (1, 2, 3):
        trial.curve.add(step, sign * loss)
    optimizer.trials[number] = trial
    return optimizer.judge(trial, 3, list(optimizer.trials.values()))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("misleads", [True, False])
def test_where_early_scores_mislead_those_with_bad_ones_go_on(sign: float, misleads: bool) -> None:
    optimizer = Auto()
    optimizer.setup(PLANE, num_trials=None, direction="min" if sign > 0 else "max", seed=0)
    optimizer.initialize()
    first_milestones(optimizer, 30)
    for number in range(8):
        late = 7 - number if misleads else number
        optimizer.observe(ended(number, optimizer.trials[number].info, sign * number, sign * late))
    decisions = [at_the_second_rung(optimizer, 11 + loss, loss, sign) for loss in range(1, 7)]
    if misleads:
        assert decisions[-1] is Decision.CONTINUE, "it may win, although it is the worst of those that got here"
    else:
        assert decisions[-3:] == [Decision.PAUSE] * 3


@pytest.mark.parametrize("direction", ["min", "max"])
def test_more_go_on_from_a_rung_that_tells_little(direction: Direction) -> None:
    sign = 1.0 if direction == "min" else -1.0

    def share(noise: float) -> float:
        def train(params: Params, seed: int) -> SimulatedRun:
            end = branin(params)
            early = random.Random(repr(sorted(params.items()))).gauss(end, noise)
            losses = [early if epoch < 27 else end for epoch in range(1, 28)]
            return SimulatedRun(steps=[(1.0, {"loss": sign * loss}) for loss in losses], value=sign * losses[-1])

        result = simulate(train, PLANE, optimizer="auto", workers=4, direction=direction, timeout_s=270.0, seed=1)
        lengths = [len(trial.curve) for trial in result.trials]
        return sum(length >= 9 for length in lengths) / sum(length >= 3 for length in lengths)

    assert share(0.0) + 0.1 < share(1000.0)


@pytest.mark.parametrize("direction", ["min", "max"])
def test_a_steep_curve_is_ranked_before_a_flat_one(direction: Direction) -> None:
    sign = 1.0 if direction == "min" else -1.0

    def train(params: Params, seed: int) -> SimulatedRun:
        # Slow ones end best, and stand worse than the others for nine epochs.
        slow = params["x"] > 0
        losses = [2 - 1.8 * min(epoch / 20, 1) if slow else 1 + 0.01 * params["y"] for epoch in range(1, 28)]
        return SimulatedRun(steps=[(1.0, {"loss": sign * loss}) for loss in losses], value=sign * losses[-1])

    result = simulate(train, PLANE, optimizer="auto", workers=4, direction=direction, timeout_s=270.0, seed=1)
    ended_slow = sum(trial.params["x"] > 0 for trial in result.trials if trial.state is TrialState.COMPLETED)
    ended_fast = sum(trial.params["x"] <= 0 for trial in result.trials if trial.state is TrialState.COMPLETED)
    assert ended_slow > 2 * ended_fast


def test_a_search_that_reports_learns_from_curves_that_have_not_ended() -> None:
    def train(params: Params, seed: int) -> SimulatedRun:
        end = branin(params)
        return SimulatedRun(steps=[(1.0, {"loss": end + 10 / epoch}) for epoch in range(1, 28)], value=end)

    def best_of(optimizer: str, seed: int) -> float:
        result = simulate(train, PLANE, optimizer=optimizer, workers=4, direction="min", timeout_s=135.0, seed=seed)
        assert result.best is not None
        assert result.best.value is not None
        return result.best.value

    gains = [best_of("asha", seed) - best_of("auto", seed) for seed in range(5)]
    assert statistics.median(gains) > 0


def test_a_model_of_good_trials_does_not_close_in_on_one_of_them() -> None:
    space = Searchspace({f"x{index}": ("DOUBLE", [0.0, 1.0]) for index in range(5)})

    def losses(params: Params) -> list[float]:
        end = sum((value - 0.3) ** 2 for value in params.values())
        return [end + 1 / epoch for epoch in range(1, 28)]

    result = simulate(
        lambda params, seed: SimulatedRun(steps=[(1.0, {"loss": y}) for y in losses(params)], value=losses(params)[-1]),
        space,
        optimizer="auto",
        workers=4,
        direction="min",
        timeout_s=270.0,
        seed=1,
    )
    last = [list(trial.params.values()) for trial in result.trials[-20:]]
    gaps = [
        max(abs(a - b) for a, b in zip(one, other, strict=True)) for one in last for other in last if one is not other
    ]
    assert statistics.median(gaps) > 0.1, "a third of them look elsewhere, and the others are no copies"
    assert len(result.trials) > 2 * 40, "many more are looked at than could be trained to their end"


def late(params: Params, seed: int) -> SimulatedRun:
    """Whoever has a large a starts slowly, and is the best in the end."""
    scores = [params["b"] + params["a"] * (1 if epoch > 9 else -1) for epoch in range(1, 28)]
    return SimulatedRun(steps=[(1.0, {"y": y}) for y in scores], value=scores[-1])


SQUARES = Searchspace(a=("INTEGER", [1, 10]), b=("INTEGER", [1, 10]))


def test_in_a_small_space_those_that_wait_go_on_when_nothing_new_is_left() -> None:
    result = simulate(late, SQUARES, optimizer="auto", workers=4, timeout_s=1000.0, seed=1)
    assert len(result.trials) == 100
    assert {trial.state for trial in result.trials} == {TrialState.COMPLETED}
    assert any(trial.attempts > 1 for trial in result.trials), "some of them had waited"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_early_scores_mislead_the_ends_of_neighbours_lead_to_the_best(seed: int) -> None:
    result = simulate(late, SQUARES, optimizer="auto", workers=4, timeout_s=270.0, seed=seed)
    assert result.best is not None
    assert result.best.value == 20
    assert len(result.trials) < 100, "without having tried all"


def curve(params: Params) -> list[float]:
    return [branin(params) + 10 / epoch for epoch in range(1, 28)]


def test_a_function_that_reports_is_halved(caplog: pytest.LogCaptureFixture) -> None:
    result = drive(Auto(), curve, space=PLANE, num_trials=27, direction="min", seed=1, workers=2)
    states = [trial.state for trial in result.trials]
    assert states.count(TrialState.STOPPED) > 10
    assert states.count(TrialState.COMPLETED) >= 1
    assert result.trials[-1].info["auto"] == "asha+model"
    assert "auto chose asha+model: the function reports and saves none, so trials stop" in caplog.text


def test_checkpoints_let_trials_pause(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = Auto()
    optimizer.setup(PLANE, num_trials=None, direction="min", seed=0)
    optimizer.initialize()
    first_milestones(optimizer, 4)
    answer = optimizer.get_suggestion()
    assert isinstance(answer, Suggestion)
    assert answer.milestones
    trial = Trial(answer.params, number=4, state=TrialState.PAUSED, info=answer.info, has_checkpoint=True)
    trial.curve.add(1, 3.0)
    optimizer.trials[4] = trial
    optimizer.observe(trial)
    assert "the function reports and saves checkpoints, so trials pause" in caplog.text


def test_several_objectives_go_to_tpe(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = Auto()
    optimizer.setup(PLANE, num_trials=None, direction="max", seed=0)
    optimizer.objectives = {"accuracy": "max", "latency": "min"}
    optimizer.initialize()
    for number in range(12):
        answer = optimizer.get_suggestion()
        assert isinstance(answer, Suggestion)
        metrics = {"accuracy": float(answer.params["x"]), "latency": float(answer.params["y"])}
        trial = Trial(answer.params, number=number, info=answer.info, state=TrialState.COMPLETED, metrics=metrics)
        optimizer.trials[number] = trial
        optimizer.observe(trial)
    assert trial.info == {"auto": "tpe", "by": "model"}
    assert "auto chose tpe: there are 2 objectives" in caplog.text


def test_more_trials_may_be_asked_for_later() -> None:
    optimizer = Auto()
    optimizer.setup(GRID, num_trials=6, direction="max", seed=0)
    optimizer.initialize()
    optimizer.num_trials = 3
    asked = [optimizer.get_suggestion() for _ in range(3)]
    # The number that held when the first question came decides, and it is three.
    assert optimizer.choice == "model"
    for number, answer in enumerate(asked):
        assert isinstance(answer, Suggestion)
        trial = Trial(answer.params, number=number, info=answer.info, state=TrialState.COMPLETED, value=1.0)
        optimizer.trials[number] = trial
        optimizer.observe(trial)
    assert optimizer.get_suggestion() is None
    optimizer.num_trials = 6
    assert isinstance(optimizer.get_suggestion(), Suggestion)


@pytest.mark.parametrize(
    ("space", "choice"), [(PLANE, "gaussian"), (Searchspace(x=("DOUBLE", [0, 1]), k=list("abc")), "tpe")]
)
def test_without_stops_every_trial_runs_to_its_end(
    space: Searchspace, choice: str, caplog: pytest.LogCaptureFixture
) -> None:
    def misleading(params: Params) -> list[float]:
        """Reports the opposite of what it returns."""
        return [-params["x"]] * 8 + [params["x"]]

    result = drive(Auto(stops_trials=False), misleading, space=space, num_trials=24, workers=2, seed=1)

    assert {trial.state for trial in result.trials} == {TrialState.COMPLETED}
    assert all(len(trial.curve) == 9 for trial in result.trials)
    assert result.trials[-1].info["auto"] == choice
    assert f"auto chose {choice}: no trial is to be stopped" in caplog.text
    late = sorted(trial.params["x"] for trial in result.trials[12:])[6]
    early = sorted(trial.params["x"] for trial in result.trials[:4])[2]
    assert late > early, "the model learns from what was returned"


def test_without_stops_it_learns_from_earlier_experiments_by_their_scores() -> None:
    optimizer = Auto(stops_trials=False)
    optimizer.setup(Searchspace(x=("DOUBLE", [0, 1])), num_trials=10, direction="max", seed=0)
    optimizer.initialize()
    past = [Trial({"x": n / 20}, number=n, state=TrialState.COMPLETED, value=-abs(n / 20 - 0.7)) for n in range(20)]
    for trial in past:
        trial.curve.add(1, -trial.value if trial.value is not None else 0.0)
    optimizer.learn_from(past)
    suggestion = optimizer.get_suggestion()
    assert isinstance(suggestion, Suggestion)
    assert abs(suggestion.params["x"] - 0.7) < 0.15
    assert suggestion.milestones == ()
