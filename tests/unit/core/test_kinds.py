"""Arguments of the right kind: what is taken, and what is refused in which words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.kinds import (
    is_number,
    read_count,
    read_flag,
    read_mapping,
    read_path,
    read_several,
    read_text,
    unfit,
)


@pytest.mark.parametrize(
    ("value", "meant"), [(True, True), (False, False), (1, True), (0, False), (np.True_, True), (np.False_, False)]
)
def test_flags(value: object, meant: bool) -> None:
    assert read_flag("quiet", value) is meant


@pytest.mark.parametrize("value", ["no", "", None, 2, 1.0, [], np.array([True])])
def test_no_flags(value: object) -> None:
    with pytest.raises(InvalidInputError, match="quiet must be True or False"):
        read_flag("quiet", value)


def test_counts() -> None:
    assert [read_count("rank", value) for value in (0, 3, np.int64(4))] == [0, 3, 4]
    for value in (-1, 1.0, "1", None, True):
        with pytest.raises(InvalidInputError, match="rank must be a whole number of at least 0"):
            read_count("rank", value)
    with pytest.raises(InvalidInputError, match="num_trials must be a whole number of at least 1"):
        read_count("num_trials", 0, least=1)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: read_mapping("params", [1], "{'lr': 0.1}"), r"params must be a dict, such as \{'lr': 0.1\}"),
        (lambda: read_several("callbacks", print, "[MyCallback()]"), r"callbacks must be a list, such as \[My"),
        (lambda: read_several("constraints", "a < 1", "['a < 1']"), "constraints must be a list"),
        (lambda: read_several("constraints", {"a": 1}, "['a < 1']"), "constraints must be a list"),
        (lambda: read_text("name", 5), r"name must be a text, int \(5\) was given"),
        (lambda: read_path("path", 5), r"path must be a path, int \(5\) was given"),
        (lambda: read_path("path", b"here"), "path must be a path"),
        (lambda: read_path("path", ""), "path must be a path"),
    ],
)
def test_refusals(read: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        read()


def test_what_is_taken() -> None:
    assert read_mapping("params", {"lr": 0.1}, "") == {"lr": 0.1}
    assert read_several("callbacks", iter([1, 2]), "") == (1, 2)
    assert read_path("path", Path("here")) == read_path("path", "here") == "here"
    assert read_path("path", "", may_be_empty=True) == ""


def test_numbers_that_fit() -> None:
    assert is_number(np.float32(2.0), lambda number: number > 1)
    assert not is_number(None, lambda number: number > 1)
    assert not is_number(math.nan, lambda number: number > 1)
    assert unfit(("a", 1, lambda number: number > 0, ""), ("b", "1", lambda number: number > 0, "give more")) == [
        "b='1': give more"
    ]
