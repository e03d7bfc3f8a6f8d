"""What an experiment returns, and what `experiment.load` gives back later: the same object."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cargobike.core.asked import Asked
from cargobike.core.errors import NotFoundError
from cargobike.core.goals import pareto_front
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Direction, ExperimentState, Trial, TrialState
from cargobike.core.values.words import number
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.reading import read_record
from cargobike.experiments.results.trial import RecordedTrial, recorded

if TYPE_CHECKING:
    import pandas as pd

    from cargobike.analysis.ablation import AblationTable
    from cargobike.analysis.importance import Importance
    from cargobike.analysis.plots import Plots
    from cargobike.experiments.results.reforms import Reform
    from cargobike.store.history.annotations import Annotations, Note
    from cargobike.store.history.snapshot import Snapshot


@dataclass(frozen=True)
class Result:
    """Everything that is known about an experiment.

    Attributes:
        id: The experiment's id; `experiment.load(id)` gives this object again.
        best: The best completed trial, one of `trials`; `None` if no trial completed with a finite value.
        trials: All trials, in the order of suggestion, each with everything that it reported, printed, saved and left.
        state: How the experiment ended.
        reason: Why, if there is something to say.
    """

    id: str
    name: str
    state: ExperimentState
    reason: str
    direction: Direction
    trials: list[RecordedTrial]
    best: RecordedTrial | None
    duration_s: float
    folder: Path
    seed: int
    _record: ExperimentRecord = field(repr=False, compare=False)

    @staticmethod
    def from_record(record: ExperimentRecord, folder: ExperimentFolder) -> Result:
        """Make a result from a folded journal."""
        folder = ExperimentFolder(folder.root.absolute())
        direction = record.header.direction
        trials = {number: recorded(trial, folder, direction) for number, trial in record.trials.items()}
        return Result(
            id=record.id,
            name=record.header.name,
            state=record.state,
            reason=record.reason,
            direction=direction,
            trials=list(trials.values()),
            best=None if record.best is None else trials[record.best.number],
            duration_s=record.duration_s,
            folder=folder.root,
            seed=record.header.seed,
            _record=record,
        )

    @property
    def record(self) -> ExperimentRecord:
        """Everything that its journal says: workers, attempts, checkpoints; see `cargobike.journals`."""
        return self._record

    @property
    def value(self) -> float | dict[str, float] | None:
        """What the only trial of a tracked run returned (or its rank 0), number or dict; the best score of a search."""
        if len(self.trials) == 1:
            only = self.trials[0]
            return only.value if only.value is not None else (dict(only.metrics) or None)
        return self.best.value if self.best is not None else None

    @property
    def values(self) -> list[Any]:
        """What each rank of a distributed run returned, a number or named numbers; of the best trial in a search."""
        if len(self.trials) == 1:
            return self.trials[0].values or [self.trials[0].value]
        return self.best.values if self.best is not None else []

    @property
    def reforms(self) -> list[Reform]:
        """How often an attempt was lost and another began, why, and what each time cost in seconds."""
        from cargobike.experiments.results.reforms import reforms_of  # noqa: PLC0415 - not every result is looked at closely

        return reforms_of(self._record)

    @property
    def pareto_front(self) -> list[RecordedTrial]:
        """The best compromises between several objectives: completed trials that no other beats in all of them."""
        return pareto_front(self.trials, self._record.goals.objectives)

    @property
    def counts(self) -> dict[str, int]:
        """How many trials ended how."""
        return {state.value: count for state, count in self._record.counts.items() if count}

    def of_state(self, state: TrialState | str) -> list[RecordedTrial]:
        """Return the trials in one state, such as `"failed"`."""
        return [trial for trial in self.trials if trial.state == state]

    @property
    def failures(self) -> list[RecordedTrial]:
        """The failed trials; `trial.error` says why."""
        return self.of_state(TrialState.FAILED)

    def trial(self, number: Trial | int) -> RecordedTrial:
        """Return a trial by its number, or this result's own record of a trial.

        Raises:
            NotFoundError: If it has no trial of that number.
        """
        wanted = number.number if isinstance(number, Trial) else number
        for trial in self.trials[wanted : wanted + 1] if wanted >= 0 else ():
            if trial.number == wanted:  # they are numbered in the order in which they were suggested
                return trial
        words = f"There is no trial {wanted} in {self.id}; it has {len(self.trials)}, counted from 0."
        raise NotFoundError(words, wanted=wanted)

    def curves(self, trial: Trial | int) -> dict[str, Curve]:
        """Return all reported points of a trial by metric name, read from the journal; also `trial.curves`."""
        return self.trial(trial).curves

    def logs(self, trial: Trial | int, stream: str = "stdout", *, rank: int = 0) -> str:
        """Return the captured output of a trial, of one rank if it ran on a gang; also `trial.logs`."""
        return self.trial(trial).output(stream, rank=rank)

    def artifacts(self, trial: Trial | int) -> list[Path]:
        """Return the files that a trial left or kept with `trial.artifact`; also `trial.artifacts`."""
        return self.trial(trial).artifacts

    @property
    def worker_seconds(self) -> float:
        """What the experiment cost: the time that its workers were there, added up."""
        return self._record.worker_seconds

    @property
    def asked(self) -> Asked:
        """Everything that was asked for: search, aim, placement, limits, what to keep."""
        return self._record.header.asked

    @property
    def reproduces(self) -> str | None:
        """The id of the experiment whose trials it repeats; `None` if it repeats none."""
        return self.asked.reproduces or None

    @property
    def user(self) -> str:
        """Who ran it, and where."""
        return f"{self._record.header.user}@{self._record.header.host}"

    @property
    def snapshot(self) -> Snapshot | None:
        """The code, environment and files that it was launched with; `None` if it died before one was taken."""
        from cargobike.store.history.snapshot import read_snapshot  # noqa: PLC0415 - not every result is looked at closely

        return read_snapshot(ExperimentFolder(self.folder))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that people have given it so far."""
        return self._annotate().tags

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes that people have written about it so far: each with `at`, `by` and `text`."""
        return self._annotate().notes

    def add_tag(self, *tags: str) -> None:
        """Add tags; `cargobike ls --tag` finds the experiment by them."""
        self._annotate(add=tags)

    def remove_tag(self, *tags: str) -> None:
        """Remove tags."""
        self._annotate(remove=tags)

    def add_note(self, text: str) -> None:
        """Add a note."""
        self._annotate(note=text)

    def _annotate(self, *, add: Sequence[str] = (), remove: Sequence[str] = (), note: str = "") -> Annotations:
        from cargobike.store.history.annotations import annotate  # noqa: PLC0415 - not every result is looked at closely

        return annotate(ExperimentFolder(self.folder), add=add, remove=remove, note=note)

    @property
    def plot(self) -> Plots:
        """Figures: `result.plot.best_so_far()`, `.slices()`, `.timeline()` and more; needs Plotly."""
        from cargobike.analysis.plots import Plots  # noqa: PLC0415 - loads NumPy, which only figures need

        return Plots(self._record, self.curves)

    def importance(self, *, step: int | None = None, metric: str | None = None) -> Importance:
        """Tell how much of the score's variance each parameter causes.

        Args:
            metric: Another metric than the objective, or one of several objectives; by default the first.
            step: Take what was reported at this step instead of final scores, so that stopped trials count too.

        Raises:
            InvalidInputError: If fewer than ten trials have a score.
        """
        from cargobike.analysis.importance import importance  # noqa: PLC0415

        return importance(self._record, step=step, metric=metric)

    def ablation(self, *, confidence: float = 0.95) -> AblationTable:
        """Tell what each component of an ablation is worth, with confidence intervals, the most valuable first.

        Raises:
            InvalidInputError: If the experiment's optimizer was not `Ablation`.
        """
        from cargobike.analysis.ablation import ablation_table  # noqa: PLC0415

        return ablation_table(self._record, confidence=confidence)

    def report(self, path: str | os.PathLike[str], *, pareto: Sequence[tuple[str, str]] = ()) -> Path:
        """Write one page with everything about the experiment into one file, and return its path; needs Plotly.

        Args:
            path: Where to write it; a file that is there is replaced.
            pareto: Pairs of metrics to draw against each other, such as `[("accuracy", "latency_ms")]`.
        """
        from cargobike.experiments.results.report import write_report  # noqa: PLC0415

        return write_report(self._record, ExperimentFolder(self.folder), path, pareto=pareto)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row for each trial; needs pandas."""
        import pandas as pd  # noqa: PLC0415 - heavy, and optional

        return pd.DataFrame(list(self._rows()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for trial in self.trials:
            yield {
                "trial": trial.number,
                "state": trial.state.value,
                "value": trial.value,
                "attempts": trial.attempts,
                "duration_s": trial.duration_s,
                **{f"params.{name}": value for name, value in trial.params.items()},
                **{f"metrics.{name}": value for name, value in trial.metrics.items()},
            }

    def _repr_html_(self) -> str:
        """Return the result as a notebook shows it."""
        from cargobike.experiments.results.summary import summary_html  # noqa: PLC0415

        return summary_html(self._record)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts.items()) or "no trials"
        best = (
            "no best trial"
            if self.best is None
            else f"best {number(self.best.value)} (trial {self.best.number}) with {self.best.params}"
        )
        return f"{self.name} [{self.id}]: {self.state}, {counts}; {best}"


def find_result(experiment: ExperimentLike) -> Result:
    """Return the result of an experiment of the project in use; see `experiment.load`."""
    folder = find_experiment(experiment)
    return Result.from_record(read_record(folder), folder)
