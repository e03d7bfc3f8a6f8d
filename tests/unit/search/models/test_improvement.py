"""A Gaussian process knows what it has seen, doubts the rest, and leads to where there is something to gain."""

from __future__ import annotations

import numpy as np
import pytest

from cargobike.search.models.gaussian import GaussianProcess
from cargobike.search.models.improvement import Improvement
from cargobike.search.models.standing import LAST
from cargobike.search.spaces.encoding import Encoding, Floats
from cargobike.search.spaces.smooth import is_smooth
from cargobike.search.spaces.space import Searchspace

SQUARE = Searchspace(x=("DOUBLE", [0, 1]), y=("DOUBLE", [0, 1]))


def bowl(rows: Floats) -> Floats:
    return (rows[:, 0] - 0.7) ** 2


def scaled(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / values.std())


def test_it_knows_what_it_has_seen_and_what_lies_between() -> None:
    rng = np.random.default_rng(1)
    rows = rng.random((25, 2))
    process = GaussianProcess(Encoding(SQUARE), rng)
    process.fit(rows, scaled(bowl(rows)))
    assert np.abs(process.mean(rows) - scaled(bowl(rows))).max() < 0.2
    between = rng.random((100, 2))
    wanted = (bowl(between) - bowl(rows).mean()) / bowl(rows).std()
    assert np.corrcoef(process.mean(between), wanted)[0, 1] > 0.98


def test_there_is_nothing_to_gain_where_it_has_looked() -> None:
    rng = np.random.default_rng(2)
    rows = rng.random((15, 2))
    losses = scaled(bowl(rows))
    process = GaussianProcess(Encoding(SQUARE), rng)
    process.fit(rows, losses)
    gains = process.improvement(np.vstack([rows, [[0.7, 0.5]]]), float(losses.min()))
    assert gains.argmax() == len(rows)
    assert (gains >= 0).all()


def test_choices_are_equal_or_not() -> None:
    space = Searchspace(kind=["a", "b", "c"], x=("DOUBLE", [0, 1]))
    encoding, rng = Encoding(space), np.random.default_rng(3)
    rows = encoding.settle(rng.random((30, 2)))
    losses = scaled((rows[:, 0] == encoding.row({"kind": "b", "x": 0.0})[0]) * -1.0)
    process = GaussianProcess(encoding, rng)
    process.fit(rows, losses)
    means = process.mean(np.array([encoding.row({"kind": kind, "x": 0.5}) for kind in "abc"]))
    assert means.argmin() == 1


def best_after(turns: int, seed: int) -> float:
    encoding, rng = Encoding(SQUARE), np.random.default_rng(seed)
    improvement = Improvement(encoding, rng)
    best = np.inf
    rows = rng.random((4, 2))
    for _ in range(turns):
        for row in rows:
            loss = float((row[0] - 0.7) ** 2 + (row[1] - 0.2) ** 2)
            best = min(best, loss)
            improvement.learn(row, (0.0, loss))
        rows = improvement.candidates(None)[:1]
    return best


def test_it_finds_the_bottom_of_a_bowl() -> None:
    assert max(best_after(12, seed) for seed in range(3)) < 1e-3


def test_whoever_runs_is_not_crowded() -> None:
    rng = np.random.default_rng(4)
    improvement = Improvement(Encoding(SQUARE), rng)
    for row in rng.random((12, 2)):
        improvement.learn(row, (0.0, float(bowl(row[None, :])[0])))
    first = improvement.candidates(None)[0]
    second = improvement.candidates(first[None, :])[0]
    assert np.abs(first - second).max() > 0.02


def test_failures_and_broken_constraints_are_kept_away_from() -> None:
    rng = np.random.default_rng(5)
    improvement = Improvement(Encoding(SQUARE), rng)
    for row in rng.random((40, 2)):
        stands = (0.0, float(row[0])) if row[0] > 0.5 else (0.3, -5.0) if row[1] > 0.5 else LAST
        improvement.learn(row, stands)
    chosen = improvement.candidates(None)[:5]
    assert (chosen[:, 0] > 0.4).all()


@pytest.mark.parametrize("stands", [[(0.0, 1.0)] * 5, [LAST] * 5, [(0.2, 1.0)] * 5, [(0.0, 1e300), (0.0, -1e300)]])
def test_scores_that_say_nothing_do_no_harm(stands: list[tuple[float, float]]) -> None:
    rng = np.random.default_rng(6)
    improvement = Improvement(Encoding(SQUARE), rng)
    for one in stands:
        improvement.learn(rng.random(2), one)
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(improvement.candidates(None)).all()


def test_only_continuous_numbers_without_conditions_are_smooth() -> None:
    assert is_smooth(SQUARE)
    assert not is_smooth(Searchspace(x=("DOUBLE", [0, 1]), n=("INTEGER", [1, 3])))
    assert not is_smooth(Searchspace(x=("DOUBLE", [0, 1]), kind=["a", "b"]))
    depends = Searchspace(kind=["a", "b"], x=("DOUBLE", [0, 1], {"when": {"kind": "a"}}))
    assert not is_smooth(depends)


def test_what_was_seen_at_a_place_counts_although_it_was_not_fitted() -> None:
    rng = np.random.default_rng(4)
    rows = rng.random((5, 2))
    losses = scaled(bowl(rows))
    process = GaussianProcess(Encoding(SQUARE), rng)
    process.fit(rows, losses)
    places, best = np.full((4, 2), 0.5), float(losses.min())
    seen = np.array([0.0, best - 1, 2.0, 2.0]), np.array([np.inf, 0.01, 0.01, np.inf])
    unknown, good, bad, unsure = process.improvement(places, best, seen)
    assert unknown == unsure == pytest.approx(process.improvement(places, best)[0])
    assert bad < unknown < good


def test_neighbours_on_a_lattice_are_other_places() -> None:
    space = Searchspace(a=("DISCRETE", [1, 2, 3]), b=("DISCRETE", [1, 2, 3]), kind=["p", "q", "r", "s"])
    encoding = Encoding(space)
    improvement = Improvement(encoding, np.random.default_rng(5))
    centre = encoding.row({"a": 2, "b": 2, "kind": "q"})
    near = improvement._near(centre[None, :], 200)
    moved = (near != centre).any(axis=1)
    assert moved.mean() > 0.8, "only a choice may be drawn again"
    assert len({row[2] for row in near}) == 4


def test_a_neighbour_with_another_choice_has_what_that_needs() -> None:
    space = Searchspace({"model": ("CATEGORICAL", ["a", "b"]), "depth": ("INTEGER", [1, 9], {"when": {"model": "b"}})})
    encoding = Encoding(space)
    improvement = Improvement(encoding, np.random.default_rng(6))
    near = improvement._near(encoding.row({"model": "a"})[None, :], 200)
    depths = [params["depth"] for row in near if "depth" in (params := encoding.params(row))]
    assert len(set(depths)) > 5
