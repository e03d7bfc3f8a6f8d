"""The language of gates: what it says, and what it refuses."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.models.promotion.gates import LONGEST, Gate, check_aliases

OWN = {"accuracy": 0.9, "latency_ms": 20.0, "val/loss": 0.1, "odd": math.nan}
OTHERS = {"champion": {"accuracy": 0.8, "val/loss": 0.2}, "old": None}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("accuracy > 0.5", True),
        ("accuracy >= champion.accuracy", True),
        ("accuracy >= champion.accuracy + 0.2", False),
        ("accuracy >= champion.accuracy * 1.1 and latency_ms <= 20", True),
        ("accuracy < 0.5 or latency_ms == 20", True),
        ("not accuracy < 0.5", True),
        ("not (accuracy > 0.5 and latency_ms <= 20)", False),
        ("0.8 < accuracy < 0.95", True),
        ("0.8 < accuracy < 0.85", False),
        ("metrics['val/loss'] < champion['val/loss']", True),
        ("abs(accuracy - champion.accuracy) < 0.2", True),
        ("max(accuracy, 0.95) == 0.95 and min(accuracy, latency_ms) < 1", True),
        ("-accuracy < 0", True),
        ("odd < 1", False),
        ("odd > 1", False),
        ("accuracy / 0 > 1", False),
        ("accuracy > old.accuracy", True),
        ("accuracy > old.accuracy and latency_ms < 20", False),
        ("not accuracy < old.accuracy", True),
        ("not (accuracy < old.accuracy or latency_ms > 20)", True),
        ("accuracy > missing", False),
        ("accuracy > 0.5 or missing > 1", False),
        ("not missing > 1", False),
        ("accuracy > champion.missing", False),
        ("missing > old.accuracy", False),
    ],
)
def test_gates_are_judged(text: str, passes: bool) -> None:
    gate = Gate(text)
    assert gate.judge(OWN, {name: OTHERS[name] for name in gate.others}).passes is passes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write a comparison"),
        (" ", "write a comparison"),
        ("accuracy", "compares nothing"),
        ("accuracy + 1", "compares nothing"),
        ("accuracy >", "cannot be understood"),
        ("accuracy = 1", "cannot be understood"),
        ("__import__('os').system('true') == 0", "is no call of abs"),
        ("accuracy.__class__.__mro__ > 1", "is not understood"),
        ("(lambda: 1)() > 0", "is no call of abs"),
        ("[1][0] > 0", "is not understood"),
        ("champion[0] > 0", "is not understood"),
        ("champion['a']['b'] > 0", "is not understood"),
        ("accuracy ** 9 > 1", "is not understood"),
        ("accuracy // 2 > 1", "is not understood"),
        ("accuracy in champion", "is not understood"),
        ("accuracy is champion", "is not understood"),
        ("'a' < 'b'", "is not understood"),
        ("True > 0", "is not understood"),
        ("1e999 > 0", "is not understood"),
        ("1j > 0", "is not understood"),
        ("f'{accuracy}' > 1", "is not understood"),
        ("accuracy and latency_ms", "no comparison"),
        ("(accuracy > 1) > 0", "compares comparisons"),
        ("(accuracy > 1) + 1 > 0", "computes with comparisons"),
        ("not accuracy", "mixes numbers and comparisons"),
        ("-(accuracy > 1) > 0", "mixes numbers and comparisons"),
        ("abs(accuracy, 1) > 0", "is no call of abs"),
        ("min(accuracy) > 0", "is no call of abs"),
        ("max(*champion) > 0", "is no call of abs"),
        ("min(accuracy, key=abs) > 0", "is no call of abs"),
        ("(x := 1) > 0", "is not understood"),
        ("a\0 > 1", "cannot be understood"),
        ("(" * 400 + "1" + ")" * 400, "cannot be understood"),
        ("a > " + "1" * LONGEST, "at most 1000 characters"),
        ("accuracy > 1; import os", "cannot be understood"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Gate(text)


@given(st.text(alphabet="ab .()<>=+-*/[]'\"and ot:_1,{}@!%&|^~\\\n", max_size=60))
def test_whatever_is_written_is_judged_or_refused(text: str) -> None:
    try:
        gate = Gate(text)
    except InvalidInputError:
        return
    assert gate.judge({"a": 1.0}, dict.fromkeys(gate.others)).passes in {True, False}


def test_a_misspelt_alias_is_no_missing_one() -> None:
    check_aliases(Gate("accuracy > champion.accuracy"), {}, "champion")
    with pytest.raises(InvalidInputError, match=r"names 'champoin', which is no alias.*Did you mean 'champion'"):
        check_aliases(Gate("accuracy > champoin.accuracy"), {"champion": 1}, "best")


def test_a_metric_that_was_not_measured_is_named() -> None:
    judgement = Gate("acuracy > champion.accuracy").judge(OWN, {"champion": OTHERS["champion"]})
    error = judgement.refusal("digits:3", "acuracy > champion.accuracy")
    assert "acuracy was not measured of this version" in str(error)
    assert "Did you mean 'accuracy'" in str(error)
    assert error.figures == {"acuracy": None, "champion.accuracy": 0.8}
