"""What chance alone does to windows of one size: how likely a distance is, in all statistics of all columns together.

Each statistic of each column is standardized by what it is in null windows, so that columns can be compared. For each
kind of statistic the largest one counts; how many null windows have one as large is its rank. The smallest of these
ranks, over all kinds, is compared with the smallest ranks of null windows. So the stated rate of false alarms holds for
the judgement as a whole, however many columns there are and however they depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from cargobike.monitoring.calibrating.null_windows import UNSEEN_ROWS, NullWindows, drawn_rows
from cargobike.monitoring.judging.measuring import SHRINKING, Measuring, Statistics
from cargobike.monitoring.packing import Packed, pack, unpack
from cargobike.monitoring.states.layout import FARTHEST, Floats, Layout

WINDOWS: Final = 4000
"""How many null windows are drawn at least."""
_IN_TAIL: Final = 60
"""How many null windows are to be false alarms, at least: fewer, and no shift in a light statistic could be rarer."""
_WEIGHTS: Final = {"means": 20.0, "mean": 4.0, "mmd": 4.0, "correlation": 2.0}
"""By how much a rank counts more than those of the other kinds.

Small moves of means are the hardest to find; what else may change shows well where it does.
"""
_EXACT: Final = 50
"""Windows of up to so many rows are calibrated at their very size."""
_LIKE_PERCENTILE: Final = 2.2
"""By how much the 99th percentile is usually farther from the median than values above it are on average."""
_SAME: Final = 1e-3
"""Standardized values that are no farther apart count as the same: some differ by rounding only."""


def calibrated_size(rows: int) -> int:
    """Return the size at which windows of some rows are calibrated: the same, or that with two digits that count.

    Example:
        >>> calibrated_size(3), calibrated_size(1034), calibrated_size(1066)
        (3, 1000, 1100)
    """
    if rows <= _EXACT:
        return rows
    unit: int = 10 ** (len(str(rows)) - 2)
    return max(round(rows / unit) * unit, 1)


class CalibrationRecord(msgspec.Struct, frozen=True):
    """A calibration as it is stored."""

    rows: int
    middles: dict[str, Packed]
    spreads: dict[str, Packed]
    maxima: dict[str, Packed]
    ranks: Packed


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """What null windows of one size have.

    Attributes:
        rows: The size.
        middles: By statistic, for each subject the median.
        spreads: By statistic, for each subject how far unusual values are above the median.
        maxima: By statistic, the largest standardized value of each null window, ascending.
        ranks: The smallest rank of each null window, ascending.
    """

    rows: int
    middles: dict[str, Floats]
    spreads: dict[str, Floats]
    maxima: dict[str, Floats]
    ranks: Floats

    def probabilities(self, measured: Statistics, rows: int, reference_rows: int) -> Statistics:
        """Return how likely a null window has something as unusual, in any statistic of any column.

        Args:
            measured: The statistics of windows.
            rows: How many rows these have.
            reference_rows: How many rows the reference has.
        """
        size = drawn_rows(rows, reference_rows) / drawn_rows(self.rows, reference_rows)
        probabilities = {}
        for name, values in measured.items():
            standard = (values * size ** SHRINKING[name] - self.middles[name]) / self.spreads[name]
            rank = _ranks(standard, self.maxima[name]) / _WEIGHTS.get(name, 1.0)
            below = np.searchsorted(self.ranks, rank * (1 + 1e-9), "right")
            probabilities[name] = (1 + below) / (1 + len(self.ranks))
        return probabilities

    def record(self) -> CalibrationRecord:
        """Return the calibration as plain data."""
        middles, spreads, maxima = (
            {name: pack(values.astype(np.float32)) for name, values in arrays.items()}
            for arrays in (self.middles, self.spreads, self.maxima)
        )
        return CalibrationRecord(self.rows, middles, spreads, maxima, pack(self.ranks))

    @classmethod
    def read(cls, record: CalibrationRecord, measuring: Measuring) -> Calibration:
        """Return the calibration that was stored.

        Raises:
            ValueError: If it is none of this reference.
        """
        ranks = unpack(record.ranks)
        read: list[dict[str, Floats]] = []
        for arrays in (record.middles, record.spreads, record.maxima):
            sizes = {name: len(measuring.subjects(name)) for name in arrays} if arrays is not record.maxima else {}
            read.append({name: unpack(packed).astype(np.float64) for name, packed in arrays.items()})
            if any(read[-1][name].shape != (size,) for name, size in sizes.items()):
                raise ValueError("a calibration of another reference")
        if not (read[0].keys() == read[1].keys() == read[2].keys() <= SHRINKING.keys()) or record.rows < 1:
            raise ValueError("a calibration of another reference")
        return cls(record.rows, read[0], read[1], read[2], ranks)


def calibrate(
    null: NullWindows, layout: Layout, *, rows: int, reference_rows: int, rate: float, seed: int
) -> Calibration:
    """Draw null windows, and return what their statistics are.

    Args:
        null: Draws them.
        layout: What they count.
        rows: How many rows a window has.
        reference_rows: How many rows the reference has.
        rate: The rate of false alarms that is wanted; a low one needs more windows.
        seed: What is drawn depends on this and on `rows` only.
    """
    random = np.random.default_rng([seed, rows, 0xCA])
    size = drawn_rows(rows, reference_rows)
    count = max(WINDOWS, round(_IN_TAIL / rate))
    measuring = Measuring(layout, null.base())
    parts = [measuring.measure(windows) for windows in null.draw(size, count, random)]
    columns = layout.names
    strays = random.poisson(size * UNSEEN_ROWS / reference_rows, (count, len(columns)))
    middles, spreads, maxima, ranks = {}, {}, {}, []
    for name in parts[0]:
        values = np.concatenate([part[name] for part in parts])
        middles[name] = _rounded(np.median(values, 0))
        # Not the percentile itself: it is known less well, and columns for which it came out low would look unusual.
        above = np.maximum(values - middles[name], 0)
        natural = _LIKE_PERCENTILE * np.sqrt(2 * np.mean(above**2, 0))
        floor = _one_row(name, size, reference_rows)
        spreads[name] = _rounded(np.maximum(natural, floor))
        standard = (values - middles[name]) / spreads[name]
        if name not in {"means", "mmd", "correlation"}:
            # A column with a value in all rows may have another one in some window, as rarely as that may be.
            places = [columns.index(subject) for subject in measuring.subjects(name)]
            standard = np.maximum(standard, strays[:, places] * (natural < floor))
        largest = _rounded(standard.max(1))
        maxima[name] = np.sort(largest)
        ranks.append(_ranks(largest, maxima[name]) / _WEIGHTS.get(name, 1.0))
    return Calibration(rows, middles, spreads, maxima, np.sort(np.min(ranks, 0)))


def _rounded(values: Floats) -> Floats:
    """Return values as they are when they come back from a file, so that judgements do not depend on that."""
    return values.astype(np.float32).astype(np.float64)


def _ranks(standard: Floats, maxima: Floats) -> Floats:
    """Return which part of null windows has a largest value at least as large."""
    above = len(maxima) - np.searchsorted(maxima, standard - _SAME, "left")
    return np.asarray((1.0 + above) / (1 + len(maxima)))


def _one_row(statistic: str, rows: int, reference_rows: int) -> float:
    """Return by how much one unusual row of a window changes a statistic: less than that is no spread."""
    share = 1 / rows
    if statistic in {"mean", "means", "wasserstein"}:
        return FARTHEST * share
    if statistic == "psi":
        return float(1.5 * share * np.log(1 + 3 * reference_rows * share))
    if statistic == "mmd":
        return 4 * share**2
    return share
