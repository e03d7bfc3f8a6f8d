from __future__ import annotations

import json
import math

import pytest

from cargobike.cli.printing import parameters, print_json


def test_parameters_are_short() -> None:
    assert parameters({"lr": 1 / 3, "act": "relu", "n": 3}) == "lr=0.333333 act=relu n=3"


def test_json_has_no_words_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.nan, math.inf, -math.inf, 1.5], "b": {1: None}})
    assert json.loads(capsys.readouterr().out) == {"a": ["nan", "inf", "-inf", 1.5], "b": {"1": None}}
