"""Expected improvement: tries where a Gaussian process expects most to be gained over the best trial so far."""

from __future__ import annotations

import math

import numpy as np

from cargobike.search.models.gaussian import GaussianProcess
from cargobike.search.models.standing import Standing
from cargobike.search.spaces.encoding import Encoding, Floats

MOST_TRIALS = 100
"""Beyond this a process takes too long to think, and others search as well."""
_ANYWHERE = 256
_NEAR_BEST = 128
_REFINED = 96
_STRIDES = (0.02, 0.1, 0.3)


class Improvement:
    """Trials and where they stand, and the places where a better one is most to be expected.

    Args:
        encoding: Says what the columns are.
        rng: Source of randomness.
        counts_noise: Whether improvement by luck alone does not count; where most trials have not ended, the best one
            would be repeated again and again for it.
    """

    def __init__(self, encoding: Encoding, rng: np.random.Generator, *, counts_noise: bool = False) -> None:
        self._encoding = encoding
        self._rng = rng
        self._process = GaussianProcess(encoding, rng, counts_noise=counts_noise)
        self._rows: list[Floats] = []
        self._stands: list[Standing] = []

    def __len__(self) -> int:
        """Return how many trials are known."""
        return len(self._rows)

    def learn(self, row: Floats, stands: Standing) -> None:
        """Add a trial; one without a score stands `LAST`."""
        self._rows.append(row)
        self._stands.append(stands)

    def candidates(self, others: Floats | None) -> Floats:
        """Return rows, the most promising one first; needs a trial with a score.

        Args:
            others: Rows of trials that still run: assumed to end as expected, so that no trial crowds around them.
        """
        self.fit(np.array(self._rows), self._losses(), None, others)
        found, gains = self.places()
        return self._encoding.kept_first(found[np.argsort(-gains, kind="stable")])

    def fit(
        self, rows: Floats, losses: Floats, trust: Floats | None, others: Floats | None = None, rounds: int = 1
    ) -> None:
        """Learn from trials that are given, of which some may not have ended.

        Args:
            rows: Where they lie.
            losses: What they ended with or are expected to end with, of mean 0 and variance 1 or so.
            trust: The variance of what is expected, 0 for trials that have ended; `None`: all have.
            others: As for `candidates`.
            rounds: How many samples of what matters to draw; none changes nothing but what is known.
        """
        process = self._process
        process.fit(rows, losses, trust, rounds)
        if others is not None and len(others):
            expected = process.mean(others)
            sure = None if trust is None else np.concatenate([trust, np.zeros(len(others))])
            process.fit(np.vstack([rows, others]), np.concatenate([losses, expected]), sure, rounds=0)
        self._best = float(losses.min())
        if trust is not None:
            ended, losses = losses[trust <= 0], process.mean(rows)
            self._best = min(float(losses.min()), float(ended.min(initial=np.inf)))
        self._good = rows[np.argsort(losses, kind="stable")[:4]]

    def places(self) -> tuple[Floats, Floats]:
        """Return places, and how much is to be gained at each over the best trial so far."""
        found = np.vstack(
            [
                self._encoding.settle(self._rng.random((_ANYWHERE, self._encoding.width))),
                self._near(self._good, _NEAR_BEST),
            ]
        )
        gains = self.gains(found)
        for _ in range(3):
            more = self._near(found[np.argsort(-gains, kind="stable")[:6]], _REFINED)
            found = np.vstack([found, more])
            gains = np.concatenate([gains, self.gains(more)])
        return found, gains

    def gains(self, rows: Floats, seen: tuple[Floats, Floats] | None = None) -> Floats:
        """Return how much is to be gained at some rows; `seen` is what `fit` was not told about them."""
        return self._process.improvement(rows, self._best, seen)

    def _losses(self) -> Floats:
        """Return losses of mean 0 and variance 1, in which the bad half is pressed together.

        How bad the bad ones are says little about where the best lie, and a single awful one would hide all else.
        """
        kept = [loss for violation, loss in self._stands if violation <= 0]
        broken = max((violation for violation, _ in self._stands if math.isfinite(violation)), default=0.0)
        worst = max(kept, default=0.0)
        # A trial that breaks constraints ranks below all that keep them, and one without a score below those.
        raw = np.array(
            [loss if violation <= 0 else worst + min(violation, broken + 1.0) for violation, loss in self._stands]
        )
        raw -= raw.min()
        gap = float(np.median(raw)) or float(raw.max()) or 1.0
        units = raw / gap
        pressed = np.where(units > 1, 1 + np.log(np.maximum(units, 1.0)), units)
        spread = float(pressed.std())
        return np.asarray((pressed - pressed.mean()) / (spread if spread > 0 else 1.0), dtype=np.float64)

    def _near(self, rows: Floats, count: int) -> Floats:
        """Return neighbours of some rows: one or two columns moved by strides of different lengths."""
        width = self._encoding.width
        source = rows[self._rng.integers(0, len(rows), size=count)]
        moves = self._rng.random((count, width)) < 1.5 / width
        moves[np.arange(count), self._rng.integers(0, width, size=count)] = True
        strides = self._rng.choice(_STRIDES, size=(count, 1)) * self._rng.normal(size=(count, width))
        # On a lattice a stride leads to another value, or it would lead nowhere; choices have no neighbours.
        strides = np.copysign(np.maximum(np.abs(strides), 1 / self._encoding.counts), strides)
        moved = np.where(moves, source + strides, source)
        is_drawn = np.isnan(source) | (moves & self._encoding.is_choice)
        if is_drawn.any():
            moved = np.where(is_drawn, self._rng.random((count, width)), moved)
        return self._encoding.settle(moved)
