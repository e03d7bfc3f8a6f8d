"""What all displays that draw have in common: one record, pauses between drawings, and errors that cost no search."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence

from cargobike.core.facts import Fact
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display.progress import Progress
from cargobike.experiments.display.snapshot import ProgressSnapshot
from cargobike.experiments.usage import DataPace

_log = logging.getLogger(__name__)


class DrawnDisplay(ABC):
    """Asks its subclass to draw a record now and then; after the first error it draws no more."""

    def __init__(self, record: ExperimentRecord) -> None:
        self._progress = Progress(record)
        self._is_over = False
        self._drawn_at = float("-inf")
        self._drawn_version = -1

    def update(self, facts: Sequence[Fact]) -> None:
        """Note what has happened; cheap, draws nothing."""
        if self._is_over:
            return
        try:
            self._progress.apply(facts)
        except Exception as error:  # noqa: BLE001 - a search is worth more than its picture
            self._give_up(error)

    def phase(self, text: str) -> None:
        """Say in a few words what is going on."""
        self._progress.set_phase(text)

    def draws_data(self, pace: DataPace | None) -> None:
        """Say how fast trials draw rows."""
        self._progress.set_data_pace(pace)

    def refresh(self, now_s: float) -> None:
        """Draw if it is time to."""
        if self._is_over:
            return
        try:
            if self._is_due(now_s):
                self._draw(self._progress.snapshot(now_s))
        except Exception as error:  # noqa: BLE001 - a search is worth more than its picture
            self._give_up(error)

    def close(self, now_s: float) -> None:
        """Draw the last state and give the screen back; the second call does nothing."""
        if self._is_over:
            return
        try:
            self._progress.set_phase("broken off")  # without effect on an experiment that has ended
            self._draw_last(self._progress.snapshot(now_s))
        except Exception as error:  # noqa: BLE001 - a search is worth more than its picture
            self._give_up(error)
        self._is_over = True

    @abstractmethod
    def _is_due(self, now_s: float) -> bool:
        """Tell whether to draw now, and remember the answer."""

    @abstractmethod
    def _draw(self, snapshot: ProgressSnapshot) -> None:
        """Draw a state that will change."""

    @abstractmethod
    def _draw_last(self, snapshot: ProgressSnapshot) -> None:
        """Draw the state that stays."""

    def _release(self) -> None:  # noqa: B027 - most displays hold nothing
        """Give the screen back after an error; may raise."""

    def _is_next_frame(self, now_s: float, *, pause_s: float, idle_pause_s: float) -> bool:
        """Tell whether the pause since the last drawing is over; it is longer if there is no news."""
        has_news = self._progress.version != self._drawn_version
        if 0.0 <= now_s - self._drawn_at < (pause_s if has_news else idle_pause_s):
            return False
        self._drawn_at = now_s
        self._drawn_version = self._progress.version
        return True

    def _give_up(self, error: Exception) -> None:
        self._is_over = True
        _log.debug("the progress display has stopped drawing", exc_info=error)
        try:
            self._release()
        except Exception as second:  # noqa: BLE001 - the stream that failed may fail again
            _log.debug("the progress display could not give the screen back", exc_info=second)
