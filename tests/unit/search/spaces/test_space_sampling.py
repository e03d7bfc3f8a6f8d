"""How values are spread: evenly on their scale, ends included, steps hit exactly."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from cargobike.search.spaces.space import Searchspace, Spec

DRAWS = 20_000


def draw(spec: Spec, seed: int = 3) -> list[float]:
    space = Searchspace(x=spec)
    return [params["x"] for params in space.get_random_parameter_values(DRAWS, random.Random(seed))]


def share(values: list[float], low: float, high: float) -> float:
    return sum(low <= value < high for value in values) / len(values)


def test_linear_is_even() -> None:
    values = draw(("DOUBLE", [10, 20]))
    for edge in range(10, 20):
        assert share(values, edge, edge + 1) == pytest.approx(0.1, abs=0.01)


def test_log_gives_every_order_of_magnitude_the_same() -> None:
    values = draw(("DOUBLE", [1e-4, 1], "log"))
    for exponent in range(-4, 0):
        assert share(values, 10.0**exponent, 10.0 ** (exponent + 1)) == pytest.approx(0.25, abs=0.015)


def test_reverse_log_does_so_towards_one() -> None:
    values = draw(("DOUBLE", [0.9, 0.9999], "reverse-log"))
    for low, high in [(0.9, 0.99), (0.99, 0.999), (0.999, 0.9999)]:
        assert share(values, low, high) == pytest.approx(1 / 3, abs=0.015)


def test_reverse_log_mirrors_log_elsewhere() -> None:
    values = draw(("DOUBLE", [1, 1000], "reverse-log"))
    assert share(values, 1001 - 10, 1001) == pytest.approx(1 / 3, abs=0.015)
    assert share(values, 1, 901) == pytest.approx(1 / 3, abs=0.015)


def test_integers_are_even_including_both_ends() -> None:
    counts = Counter(draw(("INTEGER", [-2, 2])))
    assert sorted(counts) == [-2, -1, 0, 1, 2]
    assert all(count / DRAWS == pytest.approx(0.2, abs=0.015) for count in counts.values())


@pytest.mark.parametrize("scale", ["log", "reverse-log"])
def test_integers_on_a_log_scale_do_not_starve_the_ends(scale: str) -> None:
    counts = Counter(draw(("INTEGER", [1, 8], scale)))
    assert sorted(counts) == list(range(1, 9))
    for value, count in counts.items():
        distance = value if scale == "log" else 9 - value
        expected = math.log((distance + 0.5) / (distance - 0.5)) / math.log(8.5 / 0.5)
        assert count / DRAWS == pytest.approx(expected, abs=0.015)


def test_steps_give_clean_floats() -> None:
    values = draw(("DOUBLE", [0.1, 0.95], {"step": 0.1}))
    assert sorted(set(values)) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert all(count / DRAWS == pytest.approx(1 / 9, abs=0.015) for count in Counter(values).values())


def test_steps_on_a_log_scale_favour_the_low_end_within_reason() -> None:
    counts = Counter(draw(("DOUBLE", [0.1, 2.1], "log", {"step": 0.5})))
    assert sorted(counts) == [0.1, 0.6, 1.1, 1.6, 2.1]
    ordered = [counts[value] for value in sorted(counts)]
    assert ordered == sorted(ordered, reverse=True)
    assert ordered[0] / DRAWS < 0.7


def test_integer_steps_start_at_low() -> None:
    assert set(draw(("INTEGER", [1, 8], {"step": 3}))) == {1, 4, 7}


def test_choices_are_even() -> None:
    counts = Counter(draw(["a", "b", "c"]))
    assert len(counts) == 3
    assert all(count / DRAWS == pytest.approx(1 / 3, abs=0.015) for count in counts.values())


def test_types_of_values() -> None:
    space = Searchspace(a=("DOUBLE", [1, 3]), b=("INTEGER", [1.0, 3.0]), c=("DOUBLE", [1, 3], {"step": 1}), d=[1, 2.5])
    drawn = space.get_random_parameter_values(50, random.Random(0))
    assert len(drawn) == 50
    for params in drawn:
        assert (type(params["a"]), type(params["b"]), type(params["c"])) == (float, int, float)


def test_same_seed_same_sample_and_the_global_source_is_left_alone() -> None:
    space = Searchspace(a=("DOUBLE", [0, 1]), b=["x", "y"])
    state = random.getstate()
    first = space.get_random_parameter_values(5, random.Random(1))
    assert first == space.get_random_parameter_values(5, random.Random(1))
    assert first != space.get_random_parameter_values(5, random.Random(2))
    assert len(space.get_random_parameter_values(3)) == 3
    assert random.getstate() == state


def test_extreme_ranges_stay_inside() -> None:
    tiny = 5e-324
    space = Searchspace(
        a=("DOUBLE", [tiny, 1e308], "log"),
        b=("DOUBLE", [1.0, math.nextafter(1.0, 2)], "log"),
        c=("DOUBLE", [0.0, math.nextafter(1.0, 0)], "reverse-log"),
        d=("INTEGER", [-(2**53), 2**53]),
        e=("INTEGER", [1, 2**53], "log"),
        f=("DOUBLE", [0, 1e-300], {"step": 1e-301}),
    )
    drawn = space.get_random_parameter_values(500, random.Random(5))
    assert len(drawn) == 500
    for params in drawn:
        assert space.contains(params)
        space.from_unit(space.to_unit(params))
    for unit in (0.0, 1.0):
        assert space.contains(space.from_unit([unit] * 6))
