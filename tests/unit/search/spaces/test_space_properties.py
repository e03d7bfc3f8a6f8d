"""What holds for every space that can be written."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from cargobike.search.spaces.space import Searchspace
from support.spaces import doubles, integers, small, spaces

units = st.floats(0, 1)
seeds = st.integers(0, 2**32)


@given(spaces(), seeds)
def test_samples_lie_in_the_space_and_survive_json(space: Searchspace, seed: int) -> None:
    params = space.sample(random.Random(seed))
    assert space.contains(params)
    assert repr(space.validate(json.loads(json.dumps(params)))) == repr(params)
    assert list(params) == list(space.active_names(params))


@given(spaces())
def test_descriptions_and_dicts_round_trip(space: Searchspace) -> None:
    assert Searchspace.from_description(json.loads(json.dumps(space.describe()))) == space
    assert Searchspace(space.to_dict()) == space
    assert eval(repr(space), {"Searchspace": Searchspace}) == space


@given(spaces(), st.data())
def test_unit_vectors_map_into_the_space(space: Searchspace, data: st.DataObject) -> None:
    vector = data.draw(st.lists(units | st.none(), min_size=len(space), max_size=len(space)))
    params = space.from_unit(vector)
    assert space.contains(params)
    again = space.to_unit(params)
    assert [unit is not None for unit in again] == [name in params for name in space.names]
    assert all(unit is None or 0 <= unit <= 1 for unit in again)


@given(doubles() | integers(), units)
def test_steps_are_counted_exactly(spec: Any, unit: float) -> None:
    parameter = Searchspace(x=spec)["x"]
    assume(parameter.count is not None and parameter.scale == "linear")
    count, low, high = parameter.count or 0, parameter.low or 0.0, parameter.high or 0.0
    start, step = Fraction(repr(low)), Fraction(repr(parameter.step or 1))
    index = min(int(unit * count), count - 1)
    assert parameter.at(index) == float(start + index * step)
    for value in (low + unit * (high - low), float(start + (index + Fraction(1, 2)) * step)):
        nearest = min(max(round((Fraction(value) - start) / step), 0), count - 1)
        assert parameter.to_unit(value) == (nearest + 0.5) / count


@given(spaces(), seeds)
def test_to_unit_and_back_is_the_same_place(space: Searchspace, seed: int) -> None:
    params = space.sample(random.Random(seed))
    back = space.from_unit(space.to_unit(params))
    assert list(back) == list(params)
    for name, value in params.items():
        parameter = space[name]
        if parameter.count is not None:
            assert back[name] == value
            assert type(back[name]) is type(value)
        else:
            width = (parameter.high or 0.0) - (parameter.low or 0.0)
            assert math.isclose(back[name], value, rel_tol=1e-9, abs_tol=1e-9 * width)


@given(spaces(), units, units)
def test_ranges_are_walked_upwards(space: Searchspace, left: float, right: float) -> None:
    assume(left <= right)
    for parameter in space.parameters.values():
        if parameter.is_range or parameter.type == "DISCRETE":
            assert parameter.from_unit(left) <= parameter.from_unit(right)  # type: ignore[operator]


@given(spaces())
def test_the_ends_of_a_range_are_the_ends_of_the_unit_interval(space: Searchspace) -> None:
    for parameter in space.parameters.values():
        if parameter.is_range:
            assert parameter.from_unit(0.0) == parameter.low
            last = parameter.high if parameter.count is None else parameter.at(parameter.count - 1)
            assert parameter.from_unit(1.0) == last


@given(spaces(specs=small, max_size=5))
def test_the_grid_is_everything_once(space: Searchspace) -> None:
    assert space.is_finite
    size = space.size
    assert size is not None
    assume(size <= 2000)
    grid = list(space.grid())
    assert len(grid) == size == space.grid_size()
    assert len({repr(params) for params in grid}) == size
    assert all(space.contains(params) for params in grid)
    rng = random.Random(0)
    assert all(space.sample(rng) in grid for _ in range(20))


@given(spaces(max_size=4))
def test_a_thinned_grid_is_counted_right(space: Searchspace) -> None:
    counts = {name: 2 for name, parameter in space.parameters.items() if parameter.is_range}
    size = space.grid_size(counts)
    assert size is not None
    grid = list(itertools.islice(space.grid(counts), 2000))
    assert len(grid) == min(size, 2000)
    assert all(space.contains(params) for params in grid)
