"""A live panel in a terminal."""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, TextIO

from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display.drawn import DrawnDisplay
from cargobike.experiments.display.snapshot import ProgressSnapshot

if TYPE_CHECKING:
    from cargobike.experiments.display.panel import Screen

_PAUSE_S = 0.12
_IDLE_PAUSE_S = 1.0
_START_GRACE_S = 0.5
_SEARCH_GRACE_S = 0.1


class TerminalDisplay(DrawnDisplay):
    """Keeps a panel at the bottom of the terminal up to date, at most eight times a second.

    The first drawing loads rich, which takes as long as a small trial. It waits until trials have been running
    for a moment, or until the start takes so long that people wonder.
    """

    def __init__(self, record: ExperimentRecord, stream: TextIO) -> None:
        super().__init__(record)
        self._stream = stream
        self._screen: Screen | None = None
        self._first_refresh_at: float | None = None
        self._searching_since: float | None = None

    def _is_due(self, now_s: float) -> bool:
        if self._screen is None and not self._may_open(now_s):
            return False
        return self._is_next_frame(now_s, pause_s=_PAUSE_S, idle_pause_s=_IDLE_PAUSE_S)

    def _may_open(self, now_s: float) -> bool:
        if self._first_refresh_at is None:
            self._first_refresh_at = now_s
        if self._searching_since is None and self._progress.is_searching:
            self._searching_since = now_s
        if self._searching_since is not None and now_s - self._searching_since >= _SEARCH_GRACE_S:
            return True
        return now_s - self._first_refresh_at >= _START_GRACE_S

    def _draw(self, snapshot: ProgressSnapshot) -> None:
        self._open().draw(snapshot)

    def _draw_last(self, snapshot: ProgressSnapshot) -> None:
        self._open().draw(snapshot)
        self._release()

    def _open(self) -> Screen:
        if self._screen is None:
            # rich is loaded here and not at the top: it must not delay the first trial.
            from cargobike.experiments.display.panel import Screen  # noqa: PLC0415

            atexit.register(self._release)  # the cursor comes back even if close is never called
            self._screen = Screen(self._stream)
        return self._screen

    def _release(self) -> None:
        atexit.unregister(self._release)
        if self._screen is not None:
            self._screen.close()
