"""Which changes of a space an experiment can go on with, and which are refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.asked import Asked, Search
from cargobike.core.errors import InvalidInputError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentResumed, ExperimentStarted, encode_fact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial, TrialState
from cargobike.experiments.asking.changed_space import read_change, read_signature
from cargobike.search.optimizers.gridsearch import GridSearch
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.space import Searchspace

OLD = Searchspace(lr=("DOUBLE", [0.01, 0.1]), act=["relu", "gelu"])
WIDER: dict[str, Any] = {"lr": ("DOUBLE", [0.001, 1.0]), "act": ["relu", "gelu", "tanh"]}


def experiment(*rates: float, space: Searchspace = OLD) -> ExperimentRecord:
    search = Search(space=space.describe(), num_trials=9)
    trials = {
        number: Trial({"lr": lr, "act": "relu"}, number=number, state=TrialState.COMPLETED, value=lr)
        for number, lr in enumerate(rates)
    }
    header = ExperimentStarted(at=0.0, id="20270101-000000-aaaa", asked=Asked(search=search))
    return ExperimentRecord(header, trials=trials)


def test_a_wider_space_is_taken_and_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    change = read_change(WIDER, None, experiment(0.02, 0.05), RandomSearch())
    assert change is not None
    assert Searchspace.from_description(change[0]) == Searchspace(WIDER)
    assert "goes on in a changed space, learning from 2 of 2 trials." in caplog.text


def test_trials_outside_of_a_narrower_space_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    narrow = Searchspace(lr=("DOUBLE", [0.03, 0.1]), act=["relu", "gelu"])
    assert read_change(narrow, None, experiment(0.02, 0.05, 0.06), RandomSearch()) is not None
    assert "learning from 2 of 3 trials; 1 lie outside of it: they stay in the result" in caplog.text


def test_the_same_space_is_no_change() -> None:
    assert read_change(OLD, None, experiment(0.02), RandomSearch()) is None


@pytest.mark.parametrize(
    ("space", "defaults", "message"),
    [
        (
            {**WIDER, "lr": [0.01, 0.1]},
            {},
            "lr: was DOUBLE and is DISCRETE now; launch a new experiment, with warm_start",
        ),
        ({"lr": ("DOUBLE", [0, 1])}, {}, "act: is not there any more; keep it, with a single value"),
        ({**WIDER, "lr": ("DOUBLE", [5, 6])}, {}, "None of the 2 trials that ended lies in the changed space"),
        ({**WIDER, "depth": ("INTEGER", [1, 4])}, {}, "they lack depth; say what they had: defaults={'depth': …}"),
        ({**WIDER, "depth": ("INTEGER", [1, 4])}, {"depth": 9}, "defaults: depth: 9 is outside"),
        (WIDER, {"lr": 0.1}, "defaults: 'lr' is not a new parameter"),
        ([{"lr": 0.1}], {}, "A list of trials was given"),
    ],
)
def test_what_an_experiment_cannot_go_on_with_is_refused(space: Any, defaults: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_change(space, defaults, experiment(0.02, 0.05), RandomSearch())


def test_a_grid_and_a_single_run_cannot_change() -> None:
    with pytest.raises(InvalidInputError, match="is a search by 'gridsearch', whose trials are fixed from the start"):
        read_change(WIDER, None, experiment(0.02), GridSearch())
    single = ExperimentRecord(
        ExperimentStarted(at=0.0, id="20270101-000000-aaaa", asked=Asked(search=Search(params={"lr": 0.1})))
    )
    with pytest.raises(InvalidInputError, match="is a single run"):
        read_change(WIDER, None, single, RandomSearch())


def recorded_function(tmp_path: Path, text: str) -> ExperimentFolder:
    folder = ExperimentFolder(tmp_path / "20270101-000000-aaaa")
    folder.function.parent.mkdir(parents=True)
    folder.function.write_text(text)
    return folder


def test_a_new_parameter_had_the_default_of_the_function(tmp_path: Path) -> None:
    folder = recorded_function(tmp_path, "def train(lr, act, *, depth=2, width=WIDTH):\n    return lr\n")
    signature = read_signature(folder, "script.py:train")
    deeper = {**WIDER, "depth": ("INTEGER", [1, 4])}
    change = read_change(deeper, None, experiment(0.02), RandomSearch(), signature)
    assert change is not None
    assert change[1] == {"depth": 2}
    given = read_change(deeper, {"depth": 3}, experiment(0.02), RandomSearch(), signature)
    assert given is not None
    assert given[1] == {"depth": 3}
    unknown = {**WIDER, "warmup": ("INTEGER", [1, 4])}
    with pytest.raises(InvalidInputError, match="warmup: the recorded train function takes no such argument, only lr,"):
        read_change(unknown, None, experiment(0.02), RandomSearch(), signature)


@pytest.mark.parametrize(
    "text", ["", "def other(lr):\n    pass\n", "def train(lr:\n", "@wrapped\ndef train():\n    pass\n"]
)
def test_a_function_that_cannot_be_read_is_not_checked(tmp_path: Path, text: str) -> None:
    assert read_signature(recorded_function(tmp_path, text), "script.py:train") is None


def test_the_journal_records_the_change_and_the_fold_follows_it() -> None:
    record = experiment(0.02, 0.05)
    fact = ExperimentResumed(at=5.0, num_trials=20, space=Searchspace(WIDER).describe(), defaults={"depth": 2})
    again = EXPERIMENT_FACTS.decode(encode_fact(fact))
    assert again == fact
    record.apply(again)
    assert record.header.space == Searchspace(WIDER).describe()
    assert [(change.at, change.trials) for change in record.space_changes] == [(5.0, 2)]
    record.apply(ExperimentResumed(at=9.0, num_trials=30))
    assert record.header.space == Searchspace(WIDER).describe(), "it stays as it was last"
    assert len(record.space_changes) == 1
    change = record.space_changes[0]
    assert (change.before, change.defaults) == (OLD.describe(), {"depth": 2})
