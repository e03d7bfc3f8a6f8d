"""Prospects: what is still to be gained from trials that have not ended, and from new ones, on one scale.

A Gaussian process over all parameters sees where trials ended and what the others are foreseen to end with, with the
variance that foresight has at their rung. What it expects of a trial that waits counts both: how the trial itself did,
and how its neighbours ended. So a trial goes on as long as more is to be expected of it than of a new one: where early
scores tell the end few do, and where they say nothing it is their neighbours that decide.

What tells little about ends is not shown to the process. Neighbours are misjudged alike, so that many of them do not
make up for it: where the best start slowly, all of their places would look bad for sure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cargobike.search.models.foresight import Foresight
from cargobike.search.models.improvement import Improvement
from cargobike.search.spaces.encoding import Encoding, Floats

MOST_KNOWN = 200
"""A process suggests as long as no more trials are known; densities cost less."""
_MOST_SHOWN = 60
"""So many of them are shown to the process: those that were trained longest, and of the others some."""
_SURELY_SHOWN = 45
_TELLING = 0.5
"""What is foreseen is shown if at most such a share of the variance of the ends is left open by it."""
_FEW_ENDS = 4
"""Before so many have ended all of it is shown."""
_KEPT = 24
"""So many of the best new places are kept to compare running trials with."""


class Prospects:
    """Trials, what they are foreseen to end with, and the places from which most is to be expected.

    Args:
        encoding: Says what the columns are.
        rng: Source of randomness.
    """

    def __init__(self, encoding: Encoding, rng: np.random.Generator) -> None:
        self._encoding = encoding
        # On a lattice no place can be repeated.
        self._improvement = Improvement(encoding, rng, counts_noise=not encoding.space.is_finite)
        self._row_of: dict[int, Floats] = {}
        self._best_new: Floats | None = None
        self._expected: dict[int, tuple[float, float]] = {}

    def note(self, trial: int, row: Floats) -> None:
        """Note where a trial lies; of too many trials none is needed."""
        if len(self._row_of) <= MOST_KNOWN:
            self._row_of[trial] = row

    def search(self, foresight: Foresight, known: Floats, running: Floats) -> Floats:
        """Return new places, the most promising one first, none if too little is known.

        Args:
            foresight: Says what trials will end with.
            known: Rows that are new no more.
            running: Rows of trials that run and of which nothing is known.
        """
        if not self._fit(foresight, running, rounds=1):
            return np.empty((0, self._encoding.width))
        found, gains = self._improvement.places()
        taken = {row.tobytes() for row in known.round(9)}
        is_new = np.array([row.tobytes() not in taken for row in found.round(9)])
        found = self._encoding.kept_first(found[is_new][np.argsort(-gains[is_new], kind="stable")])
        self._best_new = found[:_KEPT]
        return found

    def best_of(self, prices: Mapping[int, float], foresight: Foresight, running: Floats) -> int | None:
        """Return which of some trials promises more than the best new place that the last search found, if any does.

        Nothing is drawn here: how often it is asked changes no later answer.

        Args:
            prices: The trials, and what training each of them to its end costs, as a multiple of what a new one costs.
            foresight: As for `search`.
            running: The same.
        """
        if self._best_new is None or not self._fit(foresight, running, rounds=0):
            return None
        trials = [trial for trial in prices if trial in self._row_of and trial in self._expected]
        if not trials:
            return None
        rows = np.array([self._row_of[trial] for trial in trials])
        # What the process has been shown must not count twice.
        seen = np.array(
            [(0.0, np.inf) if trial in self._shown else self._scaled(self._expected[trial]) for trial in trials]
        )
        gains = self._improvement.gains(rows, (seen[:, 0], seen[:, 1])) / [prices[trial] for trial in trials]
        new = self._improvement.gains(self._best_new).max(initial=0.0)
        return trials[int(np.argmax(gains))] if gains.max() >= new else None

    def knows(self, trial: int) -> bool:
        """Tell whether a trial can be compared with new places."""
        return self._best_new is not None and trial in self._row_of

    def _fit(self, foresight: Foresight, running: Floats, rounds: int) -> bool:
        self._expected = foresight.expected()
        ranking = sorted(
            (variance, score, trial) for trial, (score, variance) in self._expected.items() if trial in self._row_of
        )
        if len(ranking) < 2:
            return False
        ends = [score for variance, score, _ in ranking if variance <= 0]
        if len(ends) >= _FEW_ENDS:
            open_at_most = _TELLING * float(np.var(ends))
            ranking = [one for one in ranking if one[0] <= open_at_most]
        if len(ranking) > _MOST_SHOWN:
            rest, places = ranking[_SURELY_SHOWN:], _MOST_SHOWN - _SURELY_SHOWN
            ranking[_SURELY_SHOWN:] = [rest[place * len(rest) // places] for place in range(places)]
        self._shown = {trial for _, _, trial in ranking}
        rows = np.array([self._row_of[trial] for _, _, trial in ranking])
        scores = np.array([score for _, score, _ in ranking])
        self._middle, self._spread = float(scores.mean()), float(scores.std()) or 1.0
        pairs = np.array([self._scaled((score, variance)) for variance, score, _ in ranking])
        self._improvement.fit(rows, pairs[:, 0], pairs[:, 1], running, rounds)
        return True

    def _scaled(self, expected: tuple[float, float]) -> tuple[float, float]:
        score, variance = expected
        return (score - self._middle) / self._spread, variance / self._spread**2
