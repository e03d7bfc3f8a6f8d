from __future__ import annotations

import json
import math

import pytest

from cargobike.cli.printing import duration, number, parameters, print_json


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "–"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (59.6, "1 min 0 s"),
        (3600, "1 h 0 min"),
        (90061, "1 d 1 h"),
        (-5, "0.0 s"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float | None, expected: str) -> None:
    assert duration(seconds) == expected


def test_numbers_and_parameters_are_short() -> None:
    assert number(1 / 3) == "0.333333"
    assert number(math.nan) == "nan"
    assert number(None) == "–"
    assert parameters({"lr": 1 / 3, "act": "relu", "n": 3}) == "lr=0.333333 act=relu n=3"


def test_json_has_no_words_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.nan, math.inf, -math.inf, 1.5], "b": {1: None}})
    assert json.loads(capsys.readouterr().out) == {"a": ["nan", "inf", "-inf", 1.5], "b": {"1": None}}
