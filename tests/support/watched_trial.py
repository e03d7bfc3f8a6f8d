"""A trial without workers: it keeps what was reported, and says stop or pause where a test wants it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cargobike.core.errors import TrialStopped
from cargobike.core.values.numbers import read_metrics
from cargobike.experiments.trial import context


class WatchedTrial(context.Context):
    """Keeps reports in `reports`, as pairs of step and metrics."""

    def __init__(self, folder: Path, *, stop_at: int | None = None, error: type[TrialStopped] = TrialStopped) -> None:
        super().__init__()
        self._folder = folder
        self._stop_at = stop_at
        self._error = error
        self.reports: list[tuple[int, dict[str, float]]] = []

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self.reports]

    def report(self, metrics: Mapping[str, Any], step: int | None) -> None:
        super().report(metrics, step)
        assert self.last_step is not None
        self.reports.append((self.last_step, dict(read_metrics(metrics))))
        if self._stop_at is not None and self.last_step >= self._stop_at:
            raise self._error("the trial ends here")


@contextlib.contextmanager
def inside(trial: WatchedTrial) -> Iterator[WatchedTrial]:
    """Make a trial the current one."""
    context.enter(trial)
    try:
        yield trial
    finally:
        context.enter(None)
