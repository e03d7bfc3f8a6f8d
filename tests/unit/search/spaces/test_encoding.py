"""Parameters as rows of numbers: nothing is lost on the way there and back."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.search.spaces.encoding import Encoding
from cargobike.search.spaces.space import Searchspace
from support.spaces import spaces

SPACE = Searchspace(
    model=("CATEGORICAL", ["tree", "net"]),
    depth=("INTEGER", [1, 9], {"when": {"model": "tree"}}),
    units=("INTEGER", [1, 300], "log", {"when": {"model": "net"}}),
    rate=("DOUBLE", [1e-4, 1.0], "log", {"when": {"units": [1, 2]}}),
)


@given(spaces(), st.integers(0, 1000))
def test_rows_lead_back_to_their_parameters(space: Searchspace, seed: int) -> None:
    encoding = Encoding(space)
    params = space.sample(random.Random(seed))
    again = encoding.params(encoding.row(params))
    assert list(again) == list(params)
    for name, value in params.items():
        if space[name].count is not None:
            assert again[name] == value
        else:
            assert again[name] == pytest.approx(value, rel=1e-6, abs=1e-9)


@given(spaces(), st.integers(0, 1000))
def test_any_row_settles_where_the_space_has_a_point(space: Searchspace, seed: int) -> None:
    encoding = Encoding(space)
    rows = encoding.settle(np.random.default_rng(seed).uniform(-0.2, 1.2, (5, encoding.width)))
    for row in rows:
        params = encoding.params(row)
        assert space.contains(params)
        present = [name for name, unit in zip(space.names, row, strict=True) if not np.isnan(unit)]
        # A lattice of more than 10,000 uneven values is settled only by decoding, and whatever depends on it too.
        if all(p.scale == "linear" or (p.count or 0) <= 10_000 or not p.is_range for p in space.parameters.values()):
            assert present == list(params)
            assert np.allclose(encoding.row(params), row, equal_nan=True, atol=1e-6)


def test_absence_is_inherited() -> None:
    rows = Encoding(SPACE).settle(np.array([[0.1, 0.5, 0.0, 0.5], [0.9, 0.5, 0.0, 0.5], [0.9, 0.5, 0.99, 0.5]]))
    assert np.isnan(rows).tolist() == [
        [False, False, True, True],
        [False, True, False, False],
        [False, True, False, True],
    ]


def test_parameters_from_elsewhere_have_no_row() -> None:
    encoding = Encoding(SPACE)
    assert encoding.try_row({"model": "tree", "depth": 99}) is None
    assert encoding.try_row({"model": "tree", "units": 3}) is None
    row = encoding.try_row({"model": "tree", "depth": 1})
    assert row is not None
    assert np.isnan(row).tolist() == [False, False, True, True]
