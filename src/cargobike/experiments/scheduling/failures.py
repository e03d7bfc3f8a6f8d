"""When to give up an experiment: too many failed trials, or the first ones all failing alike."""

from __future__ import annotations

from cargobike.core.records import Trial, TrialState


class FailureWatch:
    """Looks at trials as they end.

    Args:
        max_failures: How many failed trials are too many, `None` for no limit.
        fail_fast: How many trials failing alike are enough to give up, if none has gone well before; 0 for never.
    """

    def __init__(self, max_failures: int | None, fail_fast: int) -> None:
        self._max_failures = max_failures
        self._fail_fast = fail_fast
        self._failures = 0
        self._first_cause: str | None = None
        self._is_hopeful = not fail_fast

    def look_at(self, trial: Trial, cause: str) -> str | None:
        """Count a trial, and return why to give up, or `None`.

        Args:
            trial: A trial that has ended or paused.
            cause: Equal for failures of the same kind.
        """
        if trial.state is not TrialState.FAILED:
            self._is_hopeful = True
            return None
        self._failures += 1
        count, limit = self._failures, self._max_failures
        if limit is not None and count > limit:
            return f"{count} trials failed, max_failures={limit} allowed:\n{trial.error or ''}"
        if self._is_hopeful:
            return None
        if count == 1:
            self._first_cause = cause
        if cause != self._first_cause:
            self._is_hopeful = True  # they fail in different ways: the next one may work
        elif count >= self._fail_fast:
            return f"the first {count} trials all failed alike:\n{trial.error or ''}"
        return None
