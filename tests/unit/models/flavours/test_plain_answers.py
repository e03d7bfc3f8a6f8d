"""What models return becomes plain answers, one for each row."""

from __future__ import annotations

import datetime
import enum
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cargobike.core.errors import PredictionError
from cargobike.models.flavours.answers import answers_of, named


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(str):
    pass


@pytest.mark.parametrize(
    ("result", "answers"),
    [
        ([1, 2.5], [1, 2.5]),
        (np.array([1, 2]), [1, 2]),
        (np.array([[1.5], [2.0]], np.float32), [[1.5], [2.0]]),
        (torch.ones(2, requires_grad=True), [1.0, 1.0]),
        (pd.Series(["a", "b"]), ["a", "b"]),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
        ((row for row in "ab"), ["a", "b"]),
        ((np.float32(1.5), None), [1.5, None]),
        ([np.int64(1), np.bool_(True)], [1, True]),
        ([{"a": np.array([1.0])}, {"a": torch.zeros(1)}], [{"a": [1.0]}, {"a": [0.0]}]),
        ([(1, 2), [np.int8(3)]], [[1, 2], [3]]),
        ([Level.LOW, Word("x")], [1, "x"]),
        ([datetime.date(2026, 1, 2), datetime.time(3)], ["2026-01-02", "03:00:00"]),
        (np.array(["2026-01-02", "2026-01-03"], "datetime64[D]"), ["2026-01-02", "2026-01-03"]),
        ({"a": np.array([1, 2]), "b": [3, 4]}, [{"a": 1, "b": 3}, {"a": 2, "b": 4}]),
        ({"a": np.array([1, 2])}, [1, 2]),
        (named((torch.zeros(2), torch.ones(2))), [{"output_0": 0.0, "output_1": 1.0}] * 2),
        (named([torch.zeros(2)]), [0.0, 0.0]),
    ],
)
def test_results_become_plain(result: Any, answers: list[Any]) -> None:
    plain = answers_of(result, 2)
    assert plain == answers
    assert json.loads(json.dumps(plain)) == answers


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ([1], "given 2 rows and returned 1 answer"),
        (np.zeros((3, 2)), "given 2 rows and returned 3 answers"),
        ({"a": [1, 2], "b": [1]}, "given 2 rows and returned 1 answer"),
        ({}, "empty dict"),
        (None, "returned nothing"),
        (3.0, "returned a float"),
        ("ab", "returned a str"),
        (np.float64(3), "single value 3.0"),
        ([1, object()], "row 1: the answer holds a object"),
        ([b"x", 1], "row 0: the answer holds a bytes"),
        ([[1, {2}], 1], "row 0: the answer holds a set"),
        ([Colour.RED, 1], "row 0: the answer holds a Colour"),
    ],
)
def test_what_is_no_answer_for_each_row_is_refused(result: Any, words: str) -> None:
    with pytest.raises(PredictionError, match=words):
        answers_of(result, 2)
