"""The reference: what is usual, and how unusual a window is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.keeping import RowSource
from cargobike.core.values.kinds import read_count, read_several
from cargobike.core.values.numbers import read_number
from cargobike.core.values.words import count
from cargobike.monitoring.calibrating.calibration import Calibration, calibrate, calibrated_size
from cargobike.monitoring.calibrating.null_windows import NullWindows
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.judging.describing import compare, figures_of, shifts_of
from cargobike.monitoring.judging.measuring import Measuring
from cargobike.monitoring.judging.windows import window_of
from cargobike.monitoring.kept_file import ReferenceRecord, read_record, write_record
from cargobike.monitoring.rows.encoding import check_columns
from cargobike.monitoring.rows.pool import Pool
from cargobike.monitoring.rows.reading import opened, tables_of, windows_of
from cargobike.monitoring.states.making import Made, make
from cargobike.monitoring.states.state import State
from cargobike.monitoring.states.summing import Summing

_LOWEST_RATE, _HIGHEST_RATE = 0.005, 0.5


class Reference:
    """What is usual, learned from rows such as those that a model was trained on.

    Of the rows it keeps a state whose size depends on the columns only, and a sample of 8,192 rows, from which windows
    without a shift are drawn. With them it knows how far windows of each size are from the reference by chance alone,
    so that the rate of false alarms is the one that was asked for, for all columns and statistics together.

    Args:
        table: The rows: a pandas or polars DataFrame, an Arrow table, a dict of arrays, a path, a URL, or the name of
            a table of the project.
        window: How many rows windows will have. Others can be judged too; each new size takes a second or two once.
        false_alarms: Which part of windows without a shift may raise an alarm, from 0.005 to 0.5.
        seed: The same seed and rows give the same judgements.
        columns: The columns to judge, predictions among them; by default all numbers and categories.

    Raises:
        InvalidInputError: If it cannot be read, or has too few rows or no columns that can be judged.
        NotFoundError: If there is no such file or table.

    Example:
        >>> import numpy as np
        >>> from cargobike import monitoring
        >>> random = np.random.default_rng(1)
        >>> usual = {"age": random.normal(40, 10, 5000), "city": random.choice(["Oslo", "Rome"], 5000)}
        >>> reference = monitoring.Reference(usual, window=500)
        >>> now = {"age": random.normal(43, 10, 500), "city": random.choice(["Oslo", "Rome"], 500)}
        >>> judgement = reference.judge(now)
        >>> judgement.alarm, judgement.features[0].feature
        (True, 'age')
    """

    def __init__(
        self,
        table: Any,
        *,
        window: int = 1000,
        false_alarms: float = 0.05,
        seed: int = 1,
        columns: Sequence[str] | None = None,
    ) -> None:
        window, rate, seed = _read_choices(window, false_alarms, seed)
        names = None if columns is None else read_several("columns", columns, '["age", "city"]')
        self._prepare(make(table, names, seed), window, rate, seed)
        self.calibrate(window)

    def _prepare(self, made: Made, window: int, rate: float, seed: int) -> None:
        self.window, self.false_alarms, self.seed = window, rate, seed
        self._summing, self._pool, self._state = made.summing, made.pool, made.state
        self._layout = made.layout
        self._measuring = Measuring(made.layout, window_of(made.state, made.layout))
        self._null: NullWindows | None = None
        self._calibrations: dict[int, Calibration] = {}

    @property
    def rows(self) -> int:
        """How many rows the reference has."""
        return self._state.rows

    @property
    def columns(self) -> list[str]:
        """The columns that are judged."""
        return self._layout.names

    @property
    def skipped(self) -> dict[str, str]:
        """The columns that are not judged, each with the reason."""
        return dict(self._layout.skipped)

    @property
    def state(self) -> State:
        """The state of all rows of the reference."""
        return self._state

    @property
    def fingerprint(self) -> str:
        """The same for references of equal content."""
        return hashlib.sha256(self._state.encode()).hexdigest()[:16]

    @property
    def calibrated_sizes(self) -> int:
        """For how many sizes of windows it is known what chance does."""
        return len(self._calibrations)

    @property
    def summing(self) -> Summing:
        """What makes states of rows, as this reference counts them."""
        return self._summing

    def judge(self, table: Any) -> Judgement:
        """Judge the rows of a window: anything that a reference can be made of, columns in any order.

        Raises:
            InvalidInputError: If it has no rows, lacks columns of the reference, or has values of other kinds in them.
            NotFoundError: If there is no such file or table.
        """
        with opened(table, "window") as source:
            return self.judge_state(self._summed(source), ignored=self._ignored(source))

    def judge_windows(self, table: Any) -> list[Judgement]:
        """Judge rows in windows of `window` rows, one after the other; the last one may have fewer.

        Raises:
            InvalidInputError: If it has no rows, lacks columns of the reference, or has values of other kinds in them.
            NotFoundError: If there is no such file or table.
        """
        judgements = []
        with opened(table, "window") as source:
            check_columns(source.schema, self._layout)
            ignored = self._ignored(source)
            for pieces in windows_of(source, self.columns, self.window):
                state = State.empty(self._layout)
                for piece in pieces:
                    self._summing.add(state, piece)
                judgements.append(self.judge_state(state, ignored=ignored))
        return judgements

    def summarize(self, table: Any) -> State:
        """Return the state of some rows: a part of a window, to be merged with those of its other parts.

        Raises:
            InvalidInputError: If it has no rows, lacks columns of the reference, or has values of other kinds in them.
            NotFoundError: If there is no such file or table.
        """
        with opened(table, "window") as source:
            return self._summed(source)

    def read_state(self, encoded: bytes) -> State:
        """Return a state that `state.encode()` has turned into bytes.

        Raises:
            InvalidInputError: If it is no state of this reference.
        """
        try:
            return State.decode(encoded, self._layout)
        except ValueError as error:
            raise InvalidInputError(f"These bytes are no state of this reference: {error}.") from error

    def judge_state(self, state: State, *, ignored: tuple[str, ...] = ()) -> Judgement:
        """Judge a window by its state alone.

        Raises:
            InvalidInputError: If it has no rows, or is a state of another reference.
        """
        if not state.rows:
            raise InvalidInputError("The window has no rows; give at least one.")
        if state.bins.shape != self._state.bins.shape or state.kinds.shape != self._state.kinds.shape:
            raise InvalidInputError("This is a state of another reference; summarize the rows with this one.")
        calibration = self.calibrate(state.rows)
        measured = self._measuring.measure(window_of(state, self._layout))
        probabilities = calibration.probabilities(measured, state.rows, self.rows)
        figures = figures_of(self._measuring, measured, probabilities)
        probability = min(figure.probability for of_one in figures.values() for figure in of_one.values())
        is_alarm = probability <= self.false_alarms
        return Judgement(
            alarm=is_alarm,
            probability=probability,
            false_alarms=self.false_alarms,
            rows=state.rows,
            reference_rows=self.rows,
            calibrated_rows=calibration.rows,
            features=shifts_of(figures, self.false_alarms) if is_alarm else (),
            statistics=figures,
            columns=compare(self._layout, self._state, state),
            ignored=ignored,
        )

    def calibrate(self, rows: int) -> Calibration:
        """Learn what chance does to windows of some rows, if that is not known yet; `judge` does it by itself."""
        size = calibrated_size(read_count("rows", rows, least=1))
        if size not in self._calibrations:
            if self._null is None:
                self._null = NullWindows(self._layout, self._pool, self._state, self._summing.fourier)
            self._calibrations[size] = calibrate(
                self._null,
                self._layout,
                rows=size,
                reference_rows=self.rows,
                rate=self.false_alarms,
                seed=self.seed,
            )
        return self._calibrations[size]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the reference to a file: plain data, some hundred kilobytes, among them the sample of its rows.

        Args:
            path: A path or URL; a file that is there is replaced.

        Raises:
            StoreError: If it cannot be written.
        """
        record = ReferenceRecord(
            window=self.window,
            false_alarms=self.false_alarms,
            seed=self.seed,
            layout=self._layout,
            state=self._state.encode(),
            pool=self._pool.record(),
            calibrations=[calibration.record() for calibration in self._calibrations.values()],
        )
        write_record(record, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Reference:
        """Return a reference that was saved; it judges as the one that was saved did.

        Args:
            path: A path or URL.

        Raises:
            NotFoundError: If there is no such file.
            StoreError: If the file is no reference, or cannot be read.
        """
        reference = cls.__new__(cls)
        with read_record(path) as record:
            window, rate, seed = _read_choices(record.window, record.false_alarms, record.seed)
            state = State.decode(record.state, record.layout)
            made = Made(Summing(record.layout), state, Pool.read(record.pool, record.layout))
            reference._prepare(made, window, rate, seed)
            read = [Calibration.read(each, reference._measuring) for each in record.calibrations]
            reference._calibrations = {calibration.rows: calibration for calibration in read}
        return reference

    def _ignored(self, source: RowSource) -> tuple[str, ...]:
        names = set(self.columns)
        return tuple(name for name in source.schema.names if name not in names)

    def _summed(self, source: RowSource) -> State:
        check_columns(source.schema, self._layout)
        state = State.empty(self._layout)
        for table in tables_of(source, self.columns):
            self._summing.add(state, table)
        return state

    def __repr__(self) -> str:
        return (
            f"Reference of {count(self.rows, 'row')} and {count(len(self.columns), 'column')}: windows of "
            f"{self.window:,} rows, {self.false_alarms:.1%} false alarms"
        )


def _read_choices(window: Any, false_alarms: Any, seed: Any) -> tuple[int, float, int]:
    """Return what was chosen, checked."""
    rate = read_number(false_alarms, "false_alarms")
    if not _LOWEST_RATE <= rate <= _HIGHEST_RATE or np.isnan(rate):
        raise InvalidInputError(
            f"false_alarms={false_alarms!r} was given; it is the part of windows without a shift that may raise an "
            f"alarm, from {_LOWEST_RATE} to {_HIGHEST_RATE}."
        )
    return read_count("window", window, least=1), rate, read_count("seed", seed)
