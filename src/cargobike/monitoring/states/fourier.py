"""Random Fourier features: rows as points whose mean says how they are distributed, in all columns at once.

The distance between two such means is the maximum mean discrepancy (MMD) under a Gaussian kernel. Means can be added
up, so that no rows have to be kept. Half of the features have the median distance between rows as their bandwidth and
see means; the other half have half of it, and see how columns depend on each other.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cargobike.monitoring.states.layout import Codes, Layout, Singles

FEATURES: Final = 320
SCALES: Final = (1.0, 0.5)


class Fourier:
    """The features of one layout: the same for the same seed, bandwidth and columns."""

    def __init__(self, layout: Layout) -> None:
        random = np.random.default_rng([layout.seed, 0xF0])
        numbers, categories = len(layout.numbers), len(layout.categories)
        each = FEATURES // len(SCALES)
        widths = np.repeat(np.asarray(SCALES) * layout.bandwidth, each)[:, None]
        # The last weight is the phase: rows get a one behind their numbers.
        self._weights = np.empty((FEATURES, numbers + 1), np.float32)
        self._weights[:, :numbers] = random.standard_normal((FEATURES, numbers)) / widths
        self._weights[:, numbers] = random.uniform(0, 2 * np.pi, FEATURES)
        cells = layout.kinds + 2
        self._directions = (random.standard_normal((categories, cells, FEATURES)) / widths[:, 0]).astype(np.float32)
        self._directions[:, cells - 1] = 0  # what is missing is nowhere

    def of(self, numbers: Singles, codes: Codes) -> NDArray[np.float32]:
        """Return the features of rows, one row of the answer for each feature.

        Args:
            numbers: Standardized numbers, a row for each column.
            codes: Categories as states count them, a row for each column.
        """
        ones = np.ones((1, numbers.shape[1] or codes.shape[1]), np.float32)
        angles = self._weights @ np.concatenate([numbers, ones])
        for column, code in enumerate(codes):
            angles += self._directions[column].T[:, code]
        np.cos(angles, out=angles)
        return np.asarray(angles)
