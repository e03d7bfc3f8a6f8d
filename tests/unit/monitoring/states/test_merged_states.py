"""States of parts, merged in any order, are the state of all rows; they survive being stored."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring.states.distinct import KEPT, count_of, hashes_of_numbers, no_hashes, take_in
from cargobike.monitoring.states.layout import Layout
from cargobike.monitoring.states.learning import learn_layout
from cargobike.monitoring.states.state import NAMED, State, merge_states
from cargobike.monitoring.states.summing import Summing

SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.int32()), ("c", pa.string()), ("b", pa.bool_())])


def layout_of(seed: int = 1) -> Layout:
    random = np.random.default_rng(seed)
    usual = {
        "x": random.normal(5, 2, 400),
        "y": random.integers(0, 4, 400),
        "c": random.choice(["red", "green", "blue"], 400),
        "b": random.random(400) < 0.3,
    }
    return learn_layout(pa.table(usual), None, seed)


LAYOUT = layout_of()
SUMMING = Summing(LAYOUT)

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf, 5.0])),
            "y": st.one_of(st.none(), st.integers(-3, 9)),
            "c": st.one_of(st.none(), st.sampled_from(["red", "green", "new", "newer", ""]), st.text(max_size=3)),
            "b": st.one_of(st.none(), st.booleans()),
        }
    ),
    min_size=1,
    max_size=60,
)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def assert_same(one: State, other: State) -> None:
    assert one.rows == other.rows
    for name in ("bins", "infinite", "kinds", "hashes", "lowest", "highest"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("sums", "total", "squares", "cut_squares", "fourier", "products"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-4, err_msg=name)
    assert one.unseen == other.unseen


@given(rows=ROWS, cuts=st.lists(st.integers(0, 60), max_size=4), order=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_parts_in_any_order_are_the_whole(rows: list[dict[str, Any]], cuts: list[int], order: Any) -> None:
    places = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    parts = [SUMMING.state_of(table_of(rows[start:stop])) for start, stop in itertools.pairwise(places)]
    order.shuffle(parts)
    whole = SUMMING.state_of(table_of(rows))
    assert_same(merge_states([State.empty(LAYOUT), *parts]), whole)
    assert_same(State.decode(whole.encode(), LAYOUT), whole)


def test_what_is_counted() -> None:
    rows: list[dict[str, Any]] = [
        {"x": 5.0, "y": 1, "c": "red", "b": True},
        {"x": None, "y": None, "c": None, "b": None},
        {"x": math.nan, "y": 7, "c": "new", "b": False},
        {"x": math.inf, "y": 1, "c": "new", "b": False},
    ]
    state = SUMMING.state_of(table_of(rows))
    assert state.rows == 4
    assert state.bins[:, -1].tolist() == [2, 1]
    assert state.infinite.tolist() == [1, 0]
    assert [count_of(hashes) for hashes in state.hashes] == [2, 2, 2, 2]
    assert state.kinds[0, -2:].tolist() == [2, 1]
    assert {name: count for name, (_, count) in state.unseen[0].items()} == {"new": 2}
    x, y = LAYOUT.numbers
    assert y.centre + y.scale * state.highest[1] == pytest.approx(7)
    assert x.centre + x.scale * state.lowest[0] == x.centre + x.scale * state.highest[0] == pytest.approx(5)


def test_a_value_that_many_rows_have_gets_a_bin_of_its_own() -> None:
    values = np.concatenate([np.zeros(500), np.linspace(1, 2, 500)])
    layout = learn_layout(pa.table({"x": values, "same": np.full(1000, 3)}), None, 1)
    state = Summing(layout).state_of(pa.table({"x": [0.0, -0.1, 0.1, 5.0], "same": [3, 2, 4, 3]}))
    assert (state.bins[0] == 1).sum() == 4
    assert state.bins[1][:3].tolist() == [1, 2, 1]


def test_states_of_other_columns_are_not_merged() -> None:
    other = State.empty(learn_layout(pa.table({"z": np.arange(50)}), None, 1))
    with pytest.raises(InvalidInputError, match="different references"):
        State.empty(LAYOUT).merge(other)
    with pytest.raises(InvalidInputError, match="No states were given"):
        merge_states([])
    with pytest.raises(ValueError, match="no state of this reference"):
        State.decode(other.encode(), LAYOUT)


def test_distinct_values_are_counted_exactly_up_to_a_limit_and_well_beyond() -> None:
    kept = no_hashes(1)[0]
    take_in(kept, hashes_of_numbers(np.repeat(np.arange(200.0), 7)))
    assert count_of(kept) == 200
    for start in range(0, 50_000, 10_000):
        take_in(kept, hashes_of_numbers(np.arange(float(start), start + 12_000)))
    assert count_of(kept) == pytest.approx(52_000, rel=0.2)
    assert count_of(no_hashes(1)[0]) == 0
    assert len(kept) == KEPT


def test_minus_zero_is_zero() -> None:
    assert len(set(hashes_of_numbers(np.array([0.0, -0.0])).tolist())) == 1


def test_names_never_seen_are_bounded_and_their_counts_exact() -> None:
    random = np.random.default_rng(3)
    names = [f"n{number}" for number in random.integers(0, 200, 2000)]
    table = table_of([{"x": 1.0, "y": 1, "c": name, "b": True} for name in names])
    parts = merge_states(SUMMING.state_of(table.slice(start, 100)) for start in range(0, 2000, 100))
    assert len(parts.unseen[0]) == NAMED
    assert all(count == names.count(name) for name, (_, count) in parts.unseen[0].items())
    assert parts.kinds[0, -2] == 2000


def test_many_categories_are_counted_together() -> None:
    names = [f"k{number:05}" for number in range(12_000)]
    layout = learn_layout(pa.table({"id": names, "few": ["a", "b"] * 6000}), None, 1)
    many, few = layout.categories
    assert not many.is_complete
    assert many.others == ()
    assert few.is_complete
    state = Summing(layout).state_of(pa.table({"id": ["k00001", "unknown"], "few": ["a", "z"]}))
    assert state.kinds[0, -2] == 0
    assert state.kinds[1, -2] == 1
