"""Models as they are kept and served: how suspicious a payment is, computed with NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from signals import SIGNALS

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Weights = list[tuple[Array, Array]]
"""The layers of a network, each with its weights and its bias."""

CLIP = 8.0
"""So many standard deviations count at most: one wild value must not decide alone."""


class Scale:
    """Brings signals to mean 0 and deviation 1, as they were among the payments that a model learned from."""

    def __init__(self, rows: Array) -> None:
        self.mean, self.deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-6

    def __call__(self, rows: Array) -> Array:
        """Return scaled rows."""
        return np.asarray(np.clip((rows - self.mean) / self.deviation, -CLIP, CLIP))


class Detector:
    """A model: gives each payment a suspicion, and flags those above what one honest payment in 200 reaches.

    Args:
        scale: How signals are scaled.
        suspect: Gives suspicions of scaled rows; the higher, the more suspicious.
        honest: Honest payments, scaled, by which payments are flagged.
    """

    def __init__(self, scale: Scale, suspect: Any, honest: Array) -> None:
        self.scale, self.suspect = scale, suspect
        self.limit = float(np.quantile(suspect(honest), 0.995))

    def scores(self, rows: Array) -> Array:
        """Return the suspicion of each row of signals."""
        return np.asarray(self.suspect(self.scale(rows)), dtype=np.float64)

    def predict(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Answer requests: signals in, suspicion out."""
        signals = np.array([[row[name] for name in SIGNALS] for row in rows], dtype=np.float64)
        return [{"suspicion": float(one), "flagged": bool(one > self.limit)} for one in self.scores(signals)]


class Critic:
    """The critic of a GAN: what it takes for real is honest."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def __call__(self, rows: Array) -> Array:
        """Return suspicions."""
        return -forward(self.weights, rows)[:, 0]


class Autoencoder:
    """What an autoencoder cannot draw again was not among what it has learned."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def __call__(self, rows: Array) -> Array:
        """Return suspicions."""
        return np.asarray(np.square(forward(self.weights, rows) - rows).mean(axis=1))


class Forest:
    """An isolation forest: what is quickly alone among random cuts is suspicious."""

    def __init__(self, trees: Any) -> None:
        self.trees = trees

    def __call__(self, rows: Array) -> Array:
        """Return suspicions."""
        return np.asarray(-self.trees.score_samples(rows))


def forward(weights: Weights, rows: Array) -> Array:
    """Return what a network with leaky rectifiers gives."""
    for matrix, bias in weights[:-1]:
        rows = rows @ matrix.T + bias
        rows = np.where(rows > 0, rows, 0.2 * rows)
    matrix, bias = weights[-1]
    return np.asarray(rows @ matrix.T + bias)


def weights_of(network: Any) -> Weights:
    """Return the layers of a torch network as arrays."""
    layers = [layer for layer in network if hasattr(layer, "weight")]
    return [(layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()) for layer in layers]


def signals_of(rows: Any, names: Sequence[str] = tuple(SIGNALS)) -> Array:
    """Return the signals of an Arrow table as a matrix."""
    return np.column_stack([rows[name].to_numpy() for name in names]).astype(np.float64)


def average_precision(is_fraud: Any, suspicion: Array) -> float:
    """Return the mean precision over all recalls: 1 if all fraud stands before everything else."""
    precision, _ = precision_recall(is_fraud, suspicion)
    return float(precision.mean()) if len(precision) else 0.0


def precision_recall(is_fraud: Any, suspicion: Array) -> tuple[Array, Array]:
    """Return precision and recall at each theft, in the order of suspicion."""
    order = np.argsort(-suspicion, kind="stable")
    hits = np.asarray(is_fraud, dtype=bool)[order]
    found = np.cumsum(hits)[hits]
    return found / (np.flatnonzero(hits) + 1), found / max(len(found), 1)
