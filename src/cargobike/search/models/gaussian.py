"""A Gaussian process over a search space: what a score might be where no trial has been yet, and how sure that is.

Small on purpose: NumPy alone, for a hundred trials or so. How much each column matters is not fitted once but
sampled, so that with few trials no single explanation of them is believed.
"""

from __future__ import annotations

import math

import numpy as np

from cargobike.search.spaces.encoding import Encoding, Floats

_EXPLANATIONS = 6
"""How many samples of what matters are kept, the latest ones."""
_WARM_UP = 12
"""Rounds of sampling before the first suggestion."""
_ABSENT = 0.5
"""Stands for what a row does not have; the column it depends on tells such rows apart."""
_SPREAD = 1.0
"""Standard deviation of the logarithm of a length scale, before anything is seen."""
_SHAPE, _SCALE = 1.5, 0.5
"""Inverse gamma prior of the variance of scores that were scaled to variance 1."""


class GaussianProcess:
    """A Gaussian process with a Matérn 5/2 kernel, a length scale for each column, and noise.

    Args:
        encoding: Says what the columns are.
        rng: Source of randomness.
        counts_noise: Whether improvement by luck alone does not count ("augmented" expected improvement).
    """

    def __init__(self, encoding: Encoding, rng: np.random.Generator, *, counts_noise: bool = False) -> None:
        self._encoding = encoding
        self._rng = rng
        self._counts_noise = counts_noise
        width = encoding.width
        self._typical = np.concatenate([np.full(width, math.log(0.5 * math.sqrt(max(width, 2) / 2))), [-3.5]])
        self._spreads = np.concatenate([np.full(width, _SPREAD), [1.5]])
        self._explanations: list[Floats] = [self._typical.copy()]

    def fit(self, rows: Floats, scores: Floats, trust: Floats | None = None, rounds: int = 1) -> None:
        """Learn everything that is known.

        Args:
            rows: Where trials have been.
            scores: What was found there, of mean 0 and variance 1 or so.
            trust: Further noise of each score, as a variance; `None`: none.
            rounds: How many samples of what matters to draw.
        """
        self._rows, self._scores = self._numbers(rows), scores
        self._trust = np.zeros(len(rows)) if trust is None else trust
        self._gaps = self._distances(self._rows, self._rows)
        rounds = _WARM_UP if len(self._explanations) == 1 else rounds
        for _ in range(rounds):
            self._explanations.append(self._sample(self._explanations[-1]))
        del self._explanations[:-_EXPLANATIONS]
        self._solved = [self._solve(explanation) for explanation in self._explanations]

    def improvement(self, rows: Floats, best: float, seen: tuple[Floats, Floats] | None = None) -> Floats:
        """Return the expected improvement over `best` at some rows, averaged over what might explain the scores.

        Args:
            rows: Where.
            best: What is to be improved.
            seen: A score that was seen at each row and that `fit` was not given, and its variance, infinite where there
                is none.
        """
        gaps = self._distances(self._numbers(rows), self._rows)
        total = np.zeros(len(rows))
        for explanation, (lower, weights, variance) in zip(self._explanations, self._solved, strict=True):
            kernel = _matern(gaps @ np.exp(-2 * explanation[:-1]))
            mean = kernel @ weights
            part = _solved(lower, kernel.T)
            left = np.maximum(1 - np.einsum("ij,ij->j", part, part), 1e-9)
            noise = math.exp(2 * explanation[-1]) + 1e-6
            if seen is not None:
                told = left / (left + noise + seen[1])
                mean = mean + told * (seen[0] - mean)
                left = left * (1 - told)
            deviation = np.sqrt(variance * left)
            # A further trial where all but noise is known teaches nothing, although it may be lucky.
            learned = 1 - np.sqrt(noise / (left + noise)) if self._counts_noise else 1.0
            total += learned * deviation * _expected((best - mean) / deviation)
        return total / len(self._explanations)

    def mean(self, rows: Floats) -> Floats:
        """Return the expected scores of some rows."""
        gaps = self._distances(self._numbers(rows), self._rows)
        means = [
            _matern(gaps @ np.exp(-2 * explanation[:-1])) @ weights
            for explanation, (_, weights, _) in zip(self._explanations, self._solved, strict=True)
        ]
        return np.asarray(np.mean(means, axis=0), dtype=np.float64)

    def _numbers(self, rows: Floats) -> Floats:
        return np.where(np.isnan(rows), _ABSENT, rows)

    def _distances(self, one: Floats, other: Floats) -> Floats:
        """Return squared distances by column; choices are equal or not."""
        gaps = one[:, None, :] - other[None, :, :]
        gaps *= gaps
        choices = self._encoding.is_choice
        if choices.any():
            gaps[:, :, choices] = gaps[:, :, choices] > 1e-12
        return gaps

    def _solve(self, explanation: Floats) -> tuple[Floats, Floats, float]:
        lower, scaled = self._factor(explanation)
        count = len(self._scores)
        variance = (_SCALE + 0.5 * float(scaled @ scaled)) / (_SHAPE + 0.5 * count)
        return lower, _solved(lower.T, scaled), variance

    def _factor(self, explanation: Floats) -> tuple[Floats, Floats]:
        kernel = _matern(self._gaps @ np.exp(-2 * explanation[:-1]))
        kernel.flat[:: len(kernel) + 1] += math.exp(2 * explanation[-1]) + 1e-6 + self._trust
        lower = np.asarray(np.linalg.cholesky(kernel), dtype=np.float64)
        return lower, _solved(lower, self._scores)

    def _plausibility(self, explanation: Floats) -> float:
        try:
            lower, scaled = self._factor(explanation)
        except np.linalg.LinAlgError:
            return -math.inf
        away = (explanation - self._typical) / self._spreads
        fit = -(_SHAPE + 0.5 * len(scaled)) * math.log(_SCALE + 0.5 * float(scaled @ scaled))
        return fit - float(np.log(np.diag(lower)).sum()) - 0.5 * float(away @ away)

    def _sample(self, explanation: Floats) -> Floats:
        """Draw the next explanation by slice sampling, one column after the other."""
        now = explanation
        level_now = self._plausibility(now)
        columns = len(now)
        for turn in range(columns):
            direction = np.zeros(columns)
            direction[turn] = self._spreads[turn]
            level = level_now + math.log(self._rng.random())
            low = -2.0 * self._rng.random()
            high = low + 2.0
            for _ in range(12):
                step = low + (high - low) * self._rng.random()
                there = now + step * direction
                level_there = self._plausibility(there)
                if level_there > level:
                    now, level_now = there, level_there
                    break
                low, high = (step, high) if step < 0 else (low, step)
        return now


def _solved(matrix: Floats, right: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def _matern(squares: Floats) -> Floats:
    distance = np.sqrt(5.0 * np.maximum(squares, 0.0))
    return np.asarray((1 + distance + distance * distance / 3) * np.exp(-distance), dtype=np.float64)


def _expected(z: Floats) -> Floats:
    """Return the expected positive part of a normal variable around `z`."""
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    # An approximation of the normal distribution to four digits; far below 0 the exact tail keeps the order.
    below = 0.5 + 0.5 * np.tanh(z * (0.7978845608 + 0.0356774081 * z * z))
    near = density + z * below
    far = density / np.maximum(z * z + 2, 1e-9)
    return np.where(z > -2.5, np.maximum(near, 1e-12), far)
