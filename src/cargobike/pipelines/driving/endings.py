"""How attempts end without a word, and which errors of steps the pipeline's function was told of."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import StepFailedError
from cargobike.core.running.ending import process_ending
from cargobike.pipelines.driving.events import Outcome
from cargobike.pipelines.processes.attempt import read_outcome
from cargobike.pipelines.processes.messages import Gone
from cargobike.pipelines.record import RunFolder, RunRecord, StepRecord
from cargobike.pipelines.values.value import Value

_TAIL: Final = 4000


def outcome_of(gone: Gone, folder: RunFolder) -> Outcome:
    """Return how an attempt ended whose process is gone: what it said, or else what is known of its process."""
    outcome = read_outcome(folder, gone.step, gone.attempt)
    if outcome is None:
        tail = _tail(folder.output(gone.step, "stderr"))
        words = f"Its process {process_ending(gone.code)} before it had said how the step ended."
        outcome = Outcome(ok=False, error=f"{words}\n{tail}".rstrip(), seconds=gone.seconds)
    return msgspec.structs.replace(outcome, cpu_s=gone.cpu_s, peak_memory_bytes=gone.peak_memory_bytes)


class Failures:
    """The errors of steps that the pipeline's function was told of.

    Args:
        record: The run.
        restored: Returns a value that was kept.
    """

    def __init__(self, record: RunRecord, restored: Callable[[Value], Any]) -> None:
        self._record = record
        self._restored = restored
        self._raised: list[tuple[BaseException, int]] = []

    def of(self, step: StepRecord) -> BaseException:
        """Return the error of a step, which the function is told of now."""
        error = self._kept(step) or _step_failed(step, self._record.id)
        self.add(error, step.number)
        return error

    def add(self, error: BaseException, number: int) -> None:
        """Remember that the function was told that a step failed."""
        self._raised.append((error, number))

    def first_unseen(self, settled: set[int]) -> BaseException | None:
        """Return the first error of a step that the function has not been told of."""
        seen = self._with_causes({number for _, number in self._raised})
        for number in sorted(settled - seen):
            step = self._record.steps[number]
            if step.state.has_raised:
                return self.of(step)
        return None

    def behind(self, error: BaseException | None) -> tuple[int, ...]:
        """Return the failed steps that an error comes from: itself, what caused it, what was being handled."""
        numbers: set[int] = set()
        looked_at: set[int] = set()
        while error is not None and id(error) not in looked_at:
            looked_at.add(id(error))
            numbers |= {number for raised, number in self._raised if raised is error}
            error = error.__cause__ or error.__context__
        return tuple(sorted(self._with_causes(numbers)))

    def _with_causes(self, numbers: set[int]) -> set[int]:
        """Return steps without a result, and those before them that are the reason."""
        reached, waiting = set(numbers), list(numbers)
        while waiting:
            for one in self._record.steps[waiting.pop()].after:
                if not self._record.steps[one].state.is_done and one not in reached:
                    reached.add(one)
                    waiting.append(one)
        return reached

    def _kept(self, step: StepRecord) -> BaseException | None:
        """Return the exception that a call of our own raised; `None` if it could not be kept."""
        if step.failure is None:
            return None
        try:
            error = self._restored(step.failure)
        except Exception:  # noqa: BLE001 - a class that is gone may fail in any way; the text is there
            return None
        return error if isinstance(error, BaseException) else None


def _step_failed(step: StepRecord, run: str) -> StepFailedError:
    words = {"failed": "failed", "skipped": "was skipped"}.get(step.state.value, f"is {step.state}")
    return StepFailedError(
        f"Step {step.number} ({step.name}) of run {run} {words}:\n{step.error}",
        run=run,
        step=step.number,
        name=step.name,
        traceback=step.error,
    )


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
