from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cargobike import experiment, trial
from cargobike.core.errors import SpaceError
from cargobike.core.records import Suggestion
from cargobike.search.optimizers.ablation import Ablation
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import resolve_optimizer
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.optimizers import OptimizerContract

BASELINE = {"lr": 0.1, "dropout": 0.3, "augment": True, "norm": "batch"}
WITHOUT: dict[str, Any] = {"dropout": 0.0, "augment": False, "both": {"norm": None, "dropout": 0.1}}


def make(**options: Any) -> Ablation:
    return Ablation(BASELINE, WITHOUT, **options)


def all_suggestions(optimizer: Ablation, seed: int = 7, num_trials: int | None = None) -> list[Suggestion]:
    assert optimizer.preset_space is not None
    optimizer.setup(optimizer.preset_space, num_trials=num_trials, direction="max", seed=seed)
    optimizer.initialize()
    found = []
    while (suggestion := optimizer.get_suggestion()) is not None:
        assert isinstance(suggestion, Suggestion)
        found.append(suggestion)
    return found


class TestAblationKeepsTheContract(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return make(groups=[("dropout", "augment")])

    def make_space(self) -> Searchspace:
        space = make().preset_space
        assert space is not None
        return space


def test_each_round_leaves_out_every_component_once() -> None:
    found = all_suggestions(make(repeats=2, groups=[("dropout", "augment")]))
    one_round = [
        ("baseline", BASELINE),
        ("dropout", {**BASELINE, "dropout": 0.0}),
        ("augment", {**BASELINE, "augment": False}),
        ("both", {**BASELINE, "norm": None, "dropout": 0.1}),
        ("dropout + augment", {**BASELINE, "dropout": 0.0, "augment": False}),
    ]
    assert [(each.info["ablation"], each.params) for each in found] == one_round * 2
    assert [each.info["repeat"] for each in found] == [0] * 5 + [1] * 5
    assert found[3].info["changed"] == {"norm": None, "dropout": 0.1}


def test_trials_of_a_round_share_a_seed_and_rounds_do_not() -> None:
    found = all_suggestions(make(repeats=3))
    assert set(Counter(each.seed for each in found).values()) == {4}
    assert all(each.seed == found[4 * each.info["repeat"]].seed for each in found)
    assert [each.seed for each in found] != [each.seed for each in all_suggestions(make(repeats=3), seed=8)]


def test_the_number_of_trials_follows_and_may_be_cut() -> None:
    assert make(repeats=5).preset_num_trials == 20
    assert len(all_suggestions(make(repeats=5), num_trials=6)) == 6


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(SpaceError) as caught:
        Ablation(
            {"dropout": 0.3, "augment": True, "net": object()},
            {"droput": 0.0, "augment": True, "baseline": 0, "both": {"dropout": [1]}},
            groups=[("augment",), ("augment", "dropout")],
            repeats=0,
        )
    said = "\n".join(caught.value.mistakes)
    for part in (
        "baseline: net: ",
        "'droput' is not a parameter of the baseline. Did you mean 'dropout'?",
        "without augment: nothing changes",
        "'baseline' cannot name a component",
        "without both: dropout: [1] is not plain data; write a tuple",
        "('augment',) must name at least two different components",
        "there is no component 'dropout'. Did you mean 'droput'?",
        "repeats must be a whole number of at least 1, not 0",
    ):
        assert part in said


@pytest.mark.parametrize(("baseline", "without"), [({}, {"a": 1}), ({"a": 1}, {}), (None, {"a": 1}), ({"a": 1}, "a")])
def test_something_must_be_given(baseline: Any, without: Any) -> None:
    with pytest.raises(SpaceError, match="must be a dict"):
        Ablation(baseline, without)


def test_a_space_of_the_user_must_hold_every_trial() -> None:
    optimizer = Ablation({"dropout": 0.3}, {"dropout": 0.0})
    optimizer.setup(Searchspace(dropout=("DOUBLE", [0.1, 0.5])), num_trials=None, direction="max", seed=0)
    with pytest.raises(SpaceError, match=r"(?s)leave yours out.*without dropout: dropout: 0\.0 is outside"):
        optimizer.initialize()


def test_the_name_alone_is_not_enough() -> None:
    with pytest.raises(ValueError, match=r"Ablation cannot be made without baseline, without"):
        resolve_optimizer("ablation")


def test_an_experiment_needs_nothing_but_the_ablation() -> None:
    def train(lr: float, dropout: float) -> float:
        return lr + dropout + trial.seed % 1000

    result = experiment.launch(
        train, optimizer=Ablation({"lr": 0.1, "dropout": 0.3}, {"dropout": 0.0}, repeats=2), workers=2, quiet=True
    )
    assert [each.params for each in result.trials] == [{"lr": 0.1, "dropout": 0.3}, {"lr": 0.1, "dropout": 0.0}] * 2
    first, second, third, fourth = (each.value or 0 for each in result.trials)
    assert first - second == pytest.approx(0.3)
    assert third - fourth == pytest.approx(0.3)
    assert result.trials[0].seed == result.trials[1].seed != result.trials[2].seed
    assert experiment.load(result.id).trials[0].seed == result.trials[0].seed
