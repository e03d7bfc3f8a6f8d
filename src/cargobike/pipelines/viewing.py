"""A run as users see it."""

from __future__ import annotations

from typing import Any

from cargobike.pipelines.facts import RunState, StepState
from cargobike.pipelines.record import RunRecord, StepRecord, read_run, state_of
from cargobike.pipelines.values.keeping import restore


class Run:
    """A run of a pipeline: what it returned, what became of its steps.

    Attributes:
        record: Everything that its journal says.
    """

    def __init__(self, record: RunRecord) -> None:
        self.record = record

    @property
    def id(self) -> str:
        """Its id."""
        return self.record.id

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.record.pipeline

    @property
    def state(self) -> RunState:
        """What became of it; `interrupted` also if its driver died."""
        return state_of(self.record)

    @property
    def params(self) -> dict[str, Any]:
        """What the pipeline was called with."""
        return self.record.params

    @property
    def cause(self) -> dict[str, Any]:
        """What set it off."""
        return dict(self.record.started.cause)

    @property
    def error(self) -> str:
        """Why it has no result."""
        return self.record.error

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.record.seconds

    @property
    def steps(self) -> list[StepRecord]:
        """Its steps, in the order in which they were asked for."""
        return [self.record.steps[number] for number in sorted(self.record.steps)]

    @property
    def result(self) -> Any:
        """What the pipeline returned; `None` if it was not completed."""
        if self.record.result is None:
            return None
        return restore(self.record.result, self.record.folder.root, self.record.folder.project)

    def value(self, step: int) -> Any:
        """Return what a step returned.

        Raises:
            KeyError: If there is no such step, or it has no result.
        """
        found = self.record.steps[step].result
        if found is None:
            raise KeyError(f"step {step} has no result")
        return restore(found, self.record.folder.root, self.record.folder.project)

    def logs(self, step: int) -> tuple[str, str]:
        """Return what a step printed to standard output and standard error, all attempts in order."""
        texts = []
        for stream in ("stdout", "stderr"):
            path = self.record.folder.output(step, stream)
            texts.append(path.read_text("utf-8", "replace") if path.is_file() else "")
        return texts[0], texts[1]

    def refresh(self) -> Run:
        """Read its journal again."""
        self.record = read_run(self.record.folder)
        return self

    def __repr__(self) -> str:
        counts = self.record.counted()
        done = counts.get(StepState.COMPLETED, 0) + counts.get(StepState.CACHED, 0)
        return f"<run {self.id} of {self.pipeline}: {self.state}, {done} of {len(self.record.steps)} steps done>"
