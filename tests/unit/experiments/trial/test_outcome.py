from __future__ import annotations

import math
import subprocess
import sys
from collections import namedtuple
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.numbers import read_metrics, read_number
from cargobike.experiments.trial.outcome import Outcome, check_names, read_outcome


def score(returned: object) -> float:
    outcome = read_outcome(returned, None, optional=False)
    assert type(outcome.value) is float
    return outcome.value


def refusal(returned: object, metric: str | None = None, *, optional: bool = False) -> str:
    with pytest.raises(InvalidInputError) as caught:
        read_outcome(returned, metric, optional=optional)
    return str(caught.value)


@pytest.mark.parametrize(
    "number",
    [
        0.5,
        Fraction(1, 2),
        Decimal("0.5"),
        np.float32(0.5),
        np.float64(0.5),
        np.float16(0.5),
        np.longdouble(0.5),
        np.array(0.5),
        np.array([0.5]),
        np.array([[0.5]], dtype=np.float32),
        torch.tensor(0.5),
        torch.tensor([0.5]),
        torch.tensor(0.5, dtype=torch.bfloat16),
        torch.tensor(0.5, requires_grad=True),
        torch.nn.Parameter(torch.tensor([[0.5]])),
        pd.Series([0.5]),
    ],
    ids=lambda number: type(number).__qualname__,
)
def test_numbers_of_all_libraries_are_scores(number: object) -> None:
    assert score(number) == 0.5


@pytest.mark.parametrize("number", [3, np.int64(3), np.uint8(3), torch.tensor(3), np.array([3])])
def test_whole_numbers_become_floats(number: object) -> None:
    assert score(number) == 3.0


@given(st.floats())
def test_every_float_is_kept_as_it_is(number: float) -> None:
    assert math.isnan(score(number)) if math.isnan(number) else score(number) == number


@pytest.mark.parametrize("number", [np.float32("nan"), torch.tensor(float("nan"))])
def test_nan_of_other_libraries_is_kept(number: object) -> None:
    assert math.isnan(score(number))


def test_infinities_are_kept() -> None:
    assert score(torch.tensor(float("inf"))) == math.inf
    assert score(-math.inf) == -math.inf


def test_a_plain_number_has_a_name_only_if_one_was_chosen() -> None:
    assert read_outcome(1, None, optional=False) == Outcome(1.0, {})
    assert read_outcome(1, "loss", optional=False) == Outcome(1.0, {"loss": 1.0})


def test_the_metric_chooses_from_a_dict() -> None:
    returned = {"loss": torch.tensor(0.25), "accuracy": np.float32(0.75)}
    assert read_outcome(returned, "loss", optional=False) == Outcome(0.25, {"loss": 0.25, "accuracy": 0.75})


def test_a_dict_with_one_entry_needs_no_choice() -> None:
    assert read_outcome(MappingProxyType({"loss": 2}), None, optional=False) == Outcome(2.0, {"loss": 2.0})


def test_a_misspelled_metric_is_answered_with_the_nearest() -> None:
    message = refusal({"accuracy": 1.0, "loss": 0.1}, "acuracy")
    assert "metric='acuracy' is not in the dict" in message
    assert "'accuracy', 'loss'" in message
    assert "Did you mean 'accuracy'?" in message


def test_a_wrong_metric_is_refused_even_if_there_is_only_one_entry() -> None:
    assert "it holds 'loss'" in refusal({"loss": 0.1}, "accuracy", optional=True)


def test_several_entries_without_a_choice_are_listed() -> None:
    message = refusal({"accuracy": 1.0, "loss": 0.1})
    assert "'accuracy', 'loss'" in message
    assert "metric='accuracy'" in message


def test_a_dict_without_a_number_shows_all_its_mistakes_at_once() -> None:
    with pytest.raises(InvalidInputError, match="no number") as caught:
        read_outcome({"model": object(), 7: 1.0, "done": True, "path": None}, None, optional=False)
    assert len(caught.value.mistakes) == 4
    assert "'model' is object (<object object" in caught.value.mistakes[0]
    assert "the name int (7) is no text" in caught.value.mistakes[1]
    assert "'done' is bool (True)" in caught.value.mistakes[2]
    assert caught.value.mistakes[3] == "'path' is None."


def test_what_is_no_number_is_kept_beside_the_score() -> None:
    returned = {"loss": 0.1, "path": "m.pt", "best": None, 7: (1, 2.5), "done": True, "model": torch.nn.Linear(1, 1)}
    outcome = read_outcome(returned, "loss", optional=False)
    assert (outcome.value, outcome.metrics) == (0.1, {"loss": 0.1})
    model = outcome.extras.pop("model")
    assert outcome.extras == {"path": "m.pt", "best": None, "7": [1, 2.5], "done": True}
    assert model.startswith("torch.nn.modules.linear.Linear (Linear(in_features=1")
    assert model.endswith("only this description was kept")
    assert read_outcome(returned, None, optional=False).value == 0.1


def test_a_metric_that_is_no_number_is_refused_with_what_it_is() -> None:
    message = refusal({"acc": "0.9", "loss": 0.1}, "acc", optional=True)
    assert "metric='acc' is no number" in message
    assert "'acc' is str ('0.9')" in message
    assert "'acc' is None" in refusal({"acc": None}, "acc")
    assert "it holds 'loss', 'path'" in refusal({"loss": 0.1, "path": "m.pt"}, "acc")


def test_names_that_cannot_be_encoded_become_visible() -> None:
    outcome = read_outcome({"loss\udcff": 0.1, "path\udcff": "m\udcff.pt"}, None, optional=True)
    assert outcome == Outcome(0.1, {"loss\\udcff": 0.1}, {"path\\udcff": "m\\udcff.pt"})


def test_needed_metrics_that_are_no_numbers_are_named() -> None:
    outcome = read_outcome({"loss": 0.1, "latency": "3 ms"}, None, optional=True)
    with pytest.raises(InvalidInputError, match="returned 'loss' and, not as numbers, 'latency'"):
        check_names(outcome, ["loss", "latency"])


def test_an_empty_dict_holds_no_score() -> None:
    assert "empty dict" in refusal({})
    assert read_outcome({}, None, optional=True) == Outcome(None, {})


def test_a_tracked_run_needs_no_score() -> None:
    assert read_outcome(None, None, optional=True) == Outcome(None, {})
    assert read_outcome(None, "loss", optional=True) == Outcome(None, {})
    assert read_outcome({"a": 1, "b": 2}, None, optional=True) == Outcome(None, {"a": 1.0, "b": 2.0})
    assert read_outcome("done", None, optional=True) == Outcome(None, {}, {"returned": "done"})
    assert read_outcome([1, "a"], None, optional=True).extras == {"returned": [1, "a"]}
    assert "str ('done')" in refusal("done", "loss", optional=True), "a score was asked for"
    assert "yield" in refusal(generator(), optional=True), "it has not run"


Scores = namedtuple("Scores", "loss accuracy")


@dataclass
class Result:
    loss: float


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def generator() -> Iterator[float]:
    yield 1.0


async def async_generator() -> AsyncIterator[float]:
    yield 1.0


@pytest.mark.parametrize(
    ("returned", "shown", "advice"),
    [
        (None, "returned None,", "ended without `return`"),
        (True, "bool (True)", "truth value"),
        (np.bool_(True), "bool", "truth value"),
        (torch.tensor(False), "torch.Tensor (tensor(False))", "truth value"),
        ("0.5", "str ('0.5')", "float(...)"),
        (np.str_("0.5"), "str_", "float(...)"),
        (b"0.5", "bytes (b'0.5')", "float(...)"),
        ([0.5], "list ([0.5])", "return a dict such as"),
        ((0.5, 0.1), "tuple ((0.5, 0.1))", "return a dict such as"),
        ({0.5}, "set ({0.5})", "return a dict such as"),
        (Scores(1, 2), "Scores", "._asdict()"),
        (Result(1.0), "Result(loss=1.0)", "dataclasses.asdict"),
        (1 + 2j, "complex ((1+2j))", "abs(...)"),
        (np.complex64(1), "complex64", "abs(...)"),
        (np.array([1.0, 2.0]), "numpy.ndarray (array([1., 2.]))", "It has 2 elements"),
        (torch.ones(2, 3), "torch.Tensor", "It has 6 elements"),
        (torch.ones(0), "torch.Tensor", "It has 0 elements"),
        (pd.DataFrame({"a": [1, 2]}), "DataFrame", "It has 2 elements"),
        (pd.NA, "NAType (<NA>)", "trial.checkpoint.save"),
        (pd.Timestamp("2026-01-01"), "Timestamp", "trial.checkpoint.save"),
        (np.datetime64("2026-01-01"), "datetime64", "trial.checkpoint.save"),
        (10**400, "int (1000000", "too large for a float"),
        (torch.nn.Linear(1, 1), "Linear", "trial.checkpoint.save"),
        (print, "builtin_function_or_method", "forget to call it"),
        (Unprintable(), "Unprintable, which is not a score", "trial.checkpoint.save"),
        (object(), "object (<object object", "trial.checkpoint.save"),
    ],
    ids=lambda value: type(value).__qualname__ if not isinstance(value, str) else None,
)
def test_anything_else_is_refused_with_what_was_returned_and_what_to_do(
    returned: object, shown: str, advice: str
) -> None:
    message = refusal(returned)
    assert message.startswith("The train function returned ")
    assert shown in message
    assert "Allowed are a number, a NumPy or torch scalar, or a dict of named numbers." in message
    assert advice in message
    assert len(message) < 400


def test_a_generator_was_meant_to_return() -> None:
    assert "Did you mean `return` instead of `yield`?" in refusal(generator())


def test_an_async_generator_is_refused() -> None:
    assert "plain `def`" in refusal(async_generator())


@pytest.mark.filterwarnings("error")
def test_a_coroutine_is_refused_without_a_warning_about_it() -> None:
    async def train() -> float:
        return 1.0

    assert "asyncio.run(...)" in refusal(train())


def test_what_cannot_even_be_looked_at_is_refused_in_words() -> None:
    class Odd:
        @property
        def numel(self) -> int:
            raise RuntimeError("no data")

    assert "RuntimeError: no data" in refusal(Odd())
    assert "cannot be read as a number" in refusal(torch.ones(1, device="meta"))
    assert read_outcome({"loss": 0.1, "odd": Odd()}, None, optional=False).value == 0.1


def test_metrics_become_floats() -> None:
    read = read_metrics({"loss": torch.tensor(0.5, requires_grad=True), "step": np.int64(3), "lr": 0.1})
    assert read == {"loss": 0.5, "step": 3.0, "lr": 0.1}
    assert {type(value) for value in read.values()} == {float}


def test_metrics_are_a_copy() -> None:
    given = {"loss": 0.5}
    read = read_metrics(given)
    given["loss"] = 1.0
    assert read == {"loss": 0.5}


def test_every_bad_metric_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)A report holds.*'loss' is None.*'name' is str"):
        read_metrics({"loss": None, "ok": 1.0, "name": "resnet"})


def test_a_single_number_is_called_by_its_name() -> None:
    assert read_number(np.float32(2), "metric") == 2.0
    with pytest.raises(InvalidInputError, match=r"metric must be a number, got list \(\[\]\)"):
        read_number([], "metric")


def test_no_numeric_library_is_imported() -> None:
    program = (
        "import sys; from cargobike.experiments.trial import outcome; outcome.read_outcome(1, None, optional=False);"
        "assert not {'numpy', 'torch', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, check=True)
