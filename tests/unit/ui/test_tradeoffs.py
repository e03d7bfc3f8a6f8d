from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_records import lively

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Direction
from cargobike.ui.analysis.pareto import front_of, tradeoff

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30)
ways = st.sampled_from(["max", "min"])


@given(points=pairs, first=ways, second=ways)
def test_the_front_is_what_nothing_dominates(
    points: list[tuple[int, int]], first: Direction, second: Direction
) -> None:
    table = np.array(points, dtype=float)
    costs = table * [-1 if first == "max" else 1, -1 if second == "max" else 1]

    def is_beaten(index: int) -> bool:
        return any((other <= costs[index]).all() and (other < costs[index]).any() for other in costs)

    assert front_of(table, (first, second)).tolist() == [not is_beaten(index) for index in range(len(points))]


def test_directions_default_to_the_search_and_to_costs() -> None:
    found = tradeoff(lively(), "accuracy", "latency_ms")
    assert found.directions == ("max", "min")
    assert all(trial.state == "completed" for trial in found.trials)
    assert tradeoff(lively(direction="min"), "latency_ms", "accuracy").directions == ("min", "min")
    assert tradeoff(lively(), "accuracy", "latency_ms", {"latency_ms": "max"}).directions == ("max", "max")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        tradeoff(lively(), "acuracy", "latency_ms", {"latency_ms": "up", "loss": "min"})  # type: ignore[dict-item]
    said = str(caught.value)
    assert "there is no metric 'acuracy'. Did you mean 'accuracy'?" in said
    assert "must be 'max' or 'min', not 'up'" in said
    assert "'loss' is not compared here" in said
