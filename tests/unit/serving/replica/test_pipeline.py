"""What a replica does with a batch, without processes: functions, features, checks, and whose fault it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.signatures import Field, Signature
from cargobike.serving.replica.pipeline import Functions, Pipeline, find_fault, pack_functions, unpack_functions

NUMBER = Signature((Field("x", "FP64"),), (Field("y", "FP64"),))
TEAM = Signature((Field("budget", "FP64"), Field("visitors", "INT64", nullable=True)), (Field("value", "FP64"),))


class Shelf:
    """A look-up in a dict."""

    keys = ("team_id",)
    request_fields = ()
    columns = ("budget", "visitors")

    def __init__(self) -> None:
        self.is_closed = False

    def rows(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return what is there."""
        known: dict[int, dict[str, Any]] = {1: {"budget": 10.0, "visitors": 3}, 2: {"budget": 20.0, "visitors": None}}
        return [known.get(request["team_id"], {"budget": None, "visitors": None}) for request in requests]

    def close(self) -> None:
        """Remember it."""
        self.is_closed = True


def test_answers_of_numpy_become_plain_numbers() -> None:
    double: Any = lambda rows: np.asarray(rows, dtype=np.float32) * 2  # noqa: E731 - what models return is not typed
    pipeline = Pipeline(double, signature=NUMBER)
    assert pipeline.answer([1.0, 2.5]) == [2.0, 5.0]
    nested = Pipeline(lambda rows: [{"p": np.float64(row), "all": np.arange(2)} for row in rows])
    assert nested.answer([0.5]) == [{"p": 0.5, "all": [0, 1]}]


def test_functions_stand_before_and_after_the_model() -> None:
    packed = pack_functions(lambda rows: [row["x"] for row in rows], lambda answers: [{"y": y} for y in answers])
    functions = unpack_functions(packed)
    pipeline = Pipeline(lambda rows: [2 * row for row in rows], signature=NUMBER, functions=functions)
    assert pipeline.answer([{"x": 1.0}, {"x": 2.0}]) == [{"y": 2.0}, {"y": 4.0}]
    assert pipeline.outer_signature is None
    assert pack_functions(None, None) == b""
    assert unpack_functions(b"") == Functions()


def test_what_a_function_makes_is_checked_before_the_model_gets_it() -> None:
    functions = Functions(before=lambda rows: [str(row) for row in rows])
    pipeline = Pipeline(lambda rows: rows, signature=NUMBER, functions=functions)
    with pytest.raises(InvalidInputError, match=r"row 0, field 'x': \"1\" was given"):
        pipeline.answer([1])


def test_features_are_looked_up_by_keys() -> None:
    shelf = Shelf()
    pipeline = Pipeline(lambda rows: [row["budget"] for row in rows], signature=TEAM, lookup=shelf)
    assert pipeline.answer([{"team_id": 2}, {"team_id": 1}]) == [20.0, 10.0]
    assert pipeline.keys == ("team_id",)
    with pytest.raises(InvalidInputError, match="row 0, field 'budget': null was given; a number"):
        pipeline.answer([{"team_id": 3}])
    with pytest.raises(InvalidInputError, match=r"row 1 is 7; it needs team_id"):
        pipeline.answer([{"team_id": 1}, 7])
    pipeline.close()
    assert shelf.is_closed


def test_a_model_gets_those_features_of_a_view_that_it_takes() -> None:
    class LargeShelf(Shelf):
        def rows(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
            return [{"city": "Oslo", **row, "since": None} for row in super().rows(requests)]

    seen: list[dict[str, Any]] = []

    def remember(rows: list[Any]) -> list[float]:
        seen.extend(rows)
        return [1.0] * len(rows)

    pipeline = Pipeline(remember, signature=TEAM, lookup=LargeShelf())
    assert pipeline.answer([{"team_id": 1}]) == [1.0]
    assert seen == [{"budget": 10.0, "visitors": 3}]
    before = Functions(before=lambda rows: [{"budget": 1.0, "visitors": len(row["city"])} for row in rows])
    pipeline = Pipeline(remember, signature=TEAM, lookup=LargeShelf(), functions=before)
    pipeline.answer([{"team_id": 1}])
    assert seen[1] == {"budget": 1.0, "visitors": 4}, "a function before the model may need the others"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([1.0], "returned 1 answers for 2 rows"),
        ("ab", "returned str; it is to return a list of 2 answers"),
        (None, "returned NoneType"),
        ([1.0, "x"], "answer 1, field 'y': \"x\" was given; a number"),
        ([1.0, float("inf")], "answer 1, field 'y': inf was given; numbers must be finite"),
        ([1.0, object()], "holds object, which cannot be sent"),
    ],
)
def test_answers_that_do_not_fit_are_refused(answers: Any, words: str) -> None:
    with pytest.raises(PredictionError, match=words):
        Pipeline(lambda _: answers, signature=NUMBER).answer([1.0, 2.0])


@hypothesis.given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_the_rows_at_fault_are_found_and_the_others_answered(rows: list[int]) -> None:
    def answer(some: list[int]) -> list[int]:
        if 0 in some:
            raise ValueError("zero")
        return [10 * row for row in some]

    hypothesis.assume(0 in rows)
    verdict = find_fault(answer, rows, ValueError("zero"))
    assert verdict.at_fault == [place for place, row in enumerate(rows) if row == 0]
    assert verdict.answers == [None if row == 0 else 10 * row for row in rows]


def test_one_bad_row_among_many_costs_few_calls() -> None:
    calls = []

    def answer(some: list[int]) -> list[int]:
        calls.append(len(some))
        if 13 in some:
            raise ValueError("thirteen")
        return some

    find_fault(answer, list(range(64)), ValueError("thirteen"))
    assert len(calls) == 12


def test_a_batch_that_fails_only_as_a_whole_is_answered_in_parts() -> None:
    def answer(some: list[int]) -> list[int]:
        if len(some) > 3:
            raise MemoryError("too many")
        return some

    verdict = find_fault(answer, [1, 2, 3, 4, 5], MemoryError("too many"))
    assert (verdict.answers, verdict.at_fault, verdict.error) == ([1, 2, 3, 4, 5], [], None)
