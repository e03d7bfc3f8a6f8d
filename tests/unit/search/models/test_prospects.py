"""Prospects: a trial goes on as long as it promises more than a new one, by what it did and by its neighbours' ends."""

from __future__ import annotations

import numpy as np
import pytest

from cargobike.search.models.foresight import Foresight
from cargobike.search.models.prospects import Prospects
from cargobike.search.spaces.encoding import Encoding, Floats
from cargobike.search.spaces.space import Searchspace

LADDER = Searchspace(x=("INTEGER", [0, 19]))
LINE = Searchspace(x=("DOUBLE", [0, 1]))
NONE = np.empty((0, 1))
BEST = 13


def bowl(x: float) -> float:
    return ((x - BEST) / 10) ** 2


class Search:
    """A search of a space of which some trials have ended in a bowl; early scores tell the end, or are noise."""

    def __init__(self, space: Searchspace, ended: list[int], *, tells: bool) -> None:
        self.encoding = Encoding(space)
        self.rng = np.random.default_rng(1)
        self.prospects, self.foresight = Prospects(self.encoding, self.rng), Foresight()
        self.rows: list[Floats] = []
        for x in ended:
            end = bowl(x)
            self.wait(x, end + 0.1 if tells else float(self.rng.random()))
            self.foresight.note_end(len(self.rows) - 1, end, 2)

    def wait(self, x: int, early: float) -> int:
        """Add a trial that got to the second rung, and return its number."""
        value = x if self.encoding.space is LADDER else x / 19
        self.rows.append(self.encoding.row({"x": value}))
        self.prospects.note(len(self.rows) - 1, self.rows[-1])
        self.foresight.note(len(self.rows) - 1, [early, early])
        return len(self.rows) - 1

    def search(self) -> Floats:
        return self.prospects.search(self.foresight, np.array(self.rows), NONE)

    def best_of(self, prices: dict[int, float]) -> int | None:
        return self.prospects.best_of(prices, self.foresight, NONE)


OTHERS = [x for x in range(20) if x not in (3, 12, 13)]


def test_nothing_is_told_before_new_places_were_looked_for() -> None:
    search = Search(LINE, OTHERS, tells=True)
    trial = search.wait(13, 0.1)
    assert not search.prospects.knows(trial)
    assert search.best_of({trial: 1.0}) is None
    search.search()
    assert search.prospects.knows(trial)
    assert len(Prospects(search.encoding, search.rng).search(Foresight(), NONE, NONE)) == 0


def unsure(best: int) -> Search:
    """Return a search in which no trial has ended around the best, and those that wait stand best at some place."""
    search = Search(LADDER, list(range(6)), tells=True)
    for x in range(6, 20):
        search.wait(x, ((x - best) / 10) ** 2 + 0.1)
    return search


@pytest.mark.parametrize("best", [9, 16])
def test_where_early_scores_tell_the_end_they_decide(best: int) -> None:
    search = unsure(best)
    assert len(search.search()) == 0, "all places are known"
    assert search.best_of({9: 1.0, 16: 1.0}) == best


@pytest.mark.parametrize("early", [0.3, 0.5, 0.7])
def test_where_early_scores_say_nothing_neighbours_decide(early: float) -> None:
    search = Search(LADDER, OTHERS, tells=False)
    far, near = search.wait(3, 0.4), search.wait(13, early)
    search.wait(12, 0.5)
    search.search()
    assert search.best_of({far: 1.0, near: 1.0}) == near


@pytest.mark.parametrize("tells", [True, False])
def test_a_crowd_that_looks_bad_scares_away_only_where_that_tells_ends(tells: bool) -> None:
    search = Search(LINE, [0, 1, 3, 5, 7, 9, 10, 16, 17, 18, 19], tells=tells)
    for _ in range(20):
        search.wait(13, 2.0)
    best_new = float(search.search()[0][0]) * 19
    assert (11 < best_new < 15) is not tells


def test_one_that_costs_much_must_promise_much() -> None:
    search = unsure(12)
    search.search()
    assert search.best_of({11: 1.0, 13: 1000.0}) == 11
    assert search.best_of({11: 1000.0, 13: 1.0}) == 13


def test_a_trial_among_bad_ones_waits_for_a_new_one() -> None:
    search = Search(LINE, [0, 2, 4, 6, 8, 17, 19], tells=True)
    bad = search.wait(1, 1.6)
    assert len(search.search())
    assert search.best_of({bad: 1.0}) is None


def test_on_a_lattice_new_places_are_new() -> None:
    search = Search(LADDER, OTHERS, tells=True)
    found = {search.encoding.params(row)["x"] for row in search.search()}
    assert found == {3, 12, 13}


def test_those_that_are_not_shown_to_the_process_are_weighed_as_well() -> None:
    search = Search(LADDER, OTHERS, tells=True)
    bad = [search.wait(3, 0.9) for _ in range(90)]
    good = search.wait(12, 0.0)
    worse = search.wait(12, 0.9)
    search.wait(13, 0.9)
    search.search()
    assert len(search.rows) > 100, "of which sixty are shown"
    assert search.best_of(dict.fromkeys([*bad, good, worse], 1.0)) == good


def test_asking_changes_no_later_answer() -> None:
    def places(asks: int) -> list[list[float]]:
        search = Search(LINE, OTHERS, tells=True)
        trial = search.wait(13, 0.1)
        search.search()
        for _ in range(asks):
            search.best_of({trial: 1.0})
        return [list(row) for row in search.search()[:5]]

    assert places(0) == places(3)
