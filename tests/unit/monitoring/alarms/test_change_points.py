"""Changes in a stream of errors, compared with a detector that looks at every cut of every value."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring import ChangePoint, ChangePoints
from cargobike.monitoring.alarms.change_points import limit


class Naive:
    """Keeps every value, and looks at every cut after each of them."""

    def __init__(self, false_alarms: float) -> None:
        self.false_alarms = false_alarms
        self.values: list[float] = []
        self.found: list[int] = []
        self.seen = 0
        self.reach = (math.inf, -math.inf)

    def update(self, value: float) -> None:
        self.values.append(value)
        self.seen += 1
        self.reach = (min(self.reach[0], value), max(self.reach[1], value))
        has_changed = False
        while cut := self._best_cut():
            del self.values[:cut]
            has_changed = True
        if has_changed:
            self.found.append(self.seen - 1)

    def _best_cut(self) -> int:
        values, width = np.array(self.values), len(self.values)
        best = (1.0, 0)
        for old in range(5, width - 4):
            apart = abs(values[:old].mean() - values[old:].mean())
            reach = self.reach[1] - self.reach[0]
            allowed = limit(old, width - old, float(values.var()), reach, self.false_alarms)
            best = max(best, (apart / max(allowed, 1e-12), old))
        return best[1]


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_what_a_naive_one_finds_and_about_when(seed: int) -> None:
    random = np.random.default_rng(seed)
    stream = np.concatenate([random.random(120) < 0.1, random.random(80) < (0.1 if seed % 2 else 0.7)]).astype(float)
    naive, ours = Naive(0.002), ChangePoints(every=1)
    for value in stream:
        naive.update(value)
    points = ours.update(stream.tolist())
    if seed % 2:
        assert (naive.found, points) == ([], [])
        return
    assert points
    assert abs(points[0].at - naive.found[0]) <= 30
    assert abs((ours.seen - ours.width) - (naive.seen - len(naive.values))) <= 30
    assert abs(ours.mean - float(np.mean(naive.values))) < 0.1


def test_a_change_says_since_when_and_from_what_to_what() -> None:
    stream = ChangePoints()
    assert stream.update([0.1] * 500) == []
    points = stream.update([0.9] * 100)
    (point,) = points
    assert point.before == pytest.approx(0.1)
    assert point.after == pytest.approx(0.9)
    assert point.since == 500
    assert 500 < point.at < 520
    assert stream.mean == pytest.approx(0.9, abs=0.05)


def test_a_stream_without_change_is_quiet_and_small() -> None:
    random = np.random.default_rng(1)
    stream = ChangePoints()
    assert stream.update((random.random(20_000) < 0.2).astype(float).tolist()) == []
    assert stream.width == 20_000
    assert len(stream.buckets) < 100
    assert stream.mean == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_scale_of_errors_does_not_matter(scale: float) -> None:
    random = np.random.default_rng(1)
    values = np.concatenate([random.normal(1, 0.3, 300), random.normal(2, 0.3, 300)]) * scale
    points = ChangePoints().update(values.tolist())
    assert points
    assert abs(points[0].since - 300) < 40


def test_it_goes_on_from_what_was_stored() -> None:
    random = np.random.default_rng(3)
    values = np.concatenate([random.random(300), random.random(300) + 1]).tolist()
    whole, part = ChangePoints(), ChangePoints()
    expected = whole.update(values)
    found = part.update(values[:317])
    part = msgspec.json.decode(msgspec.json.encode(part), type=ChangePoints)
    found += part.update(values[317:])
    assert found == expected
    assert all(isinstance(point, ChangePoint) for point in found)
    assert part == whole


def test_before_the_first_value_there_is_no_mean() -> None:
    assert math.isnan(ChangePoints().mean)
    assert ChangePoints().update(0.5) == []


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_known_is_left_out_by_the_caller(value: float) -> None:
    with pytest.raises(InvalidInputError, match="leave out what is not known"):
        ChangePoints().update([0.1, value])


def test_wrong_choices_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        ChangePoints(false_alarms=2)
    with pytest.raises(InvalidInputError, match="must be a number"):
        ChangePoints().update(["0.1"])  # type: ignore[list-item]
