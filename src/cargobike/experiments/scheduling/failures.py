"""When to end an experiment: too many failed trials, the first ones all failing alike, or a good enough one."""

from __future__ import annotations

from typing import Literal

from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial, TrialState
from cargobike.experiments.scheduling.plan import Plan


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


class EndWatch:
    """Looks at every trial that ended or paused, and tells whether the experiment should end because of it.

    With repeats it looks at settings, each once, when all of its runs have ended.
    """

    def __init__(self, plan: Plan, record: ExperimentRecord) -> None:
        self._record = record
        self._failures = FailureWatch(plan.max_failures, plan.fail_fast)
        self._reason_to_end = plan.reason_to_end
        self._counted: set[int] = set()

    def look_at(self, number: int, cause: str) -> tuple[Literal["completed", "failed"], str] | None:
        """Return how the experiment should end now and why, `None` if it should go on.

        Args:
            number: The number of a run that has ended or paused.
            cause: Equal for failures of the same kind.
        """
        settings = self._record.settings
        trial = self._record.runs[number] if settings is None else settings.of(number)
        if settings is not None:
            if not trial.state.is_final or trial.number in self._counted:
                return None
            self._counted.add(trial.number)
        reason = self._failures.look_at(trial, cause)
        if reason is not None:
            return "failed", reason
        enough = self._reason_to_end(trial) if self._reason_to_end is not None else None
        return None if enough is None else ("completed", enough)
