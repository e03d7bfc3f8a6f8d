"""What an experiment returns, and what `experiment.load` gives back later: the same object."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cargobike.core.asked import Asked
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest
from cargobike.core.goals import pareto_front
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Direction, ExperimentState, Trial, TrialState
from cargobike.core.registering.steps import Kept
from cargobike.core.values.kinds import read_text
from cargobike.core.values.numbers import describe, whole_by_type
from cargobike.core.values.words import count, number
from cargobike.core.visible import visible
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


log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
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
        trials = {number: recorded(trial, record, folder) for number, trial in record.trials.items()}
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

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("experiment", self.id)

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
        """Return the trials in one state, such as `"failed"`.

        Raises:
            InvalidInputError: If there is no such state.
        """
        states = [known.value for known in TrialState]
        if state not in states:
            raise InvalidInputError(
                f"trials are never {state!r}; their states are {', '.join(states)}.{nearest(str(state), states)}"
            )
        return [trial for trial in self.trials if trial.state == state]

    @property
    def failures(self) -> list[RecordedTrial]:
        """The failed trials; `trial.error` says why."""
        return self.of_state(TrialState.FAILED)

    def repeats(self, trial: Trial | int) -> list[RecordedTrial]:
        """Return the runs that a trial is the mean of, each with its own seed, value, output and files.

        Raises:
            NotFoundError: If it has no trial of that number.
        """
        one = self.trial(trial)
        folder = ExperimentFolder(self.folder)
        return [recorded(self._record.runs[each], self._record, folder) for each in one.repeats or (one.number,)]

    def trial(self, number: Trial | int) -> RecordedTrial:
        """Return a trial by its number, or this result's own record of a trial; with repeats also one of its runs.

        Raises:
            NotFoundError: If it has no trial of that number.
        """
        wanted = number.number if isinstance(number, Trial) else _number_of(number)
        for trial in self.trials[wanted : wanted + 1] if wanted >= 0 else ():
            if trial.number == wanted:  # they are numbered in the order in which they were suggested
                return trial
        if self._record.settings is not None and wanted in self._record.runs:  # numbers count the runs
            found = self._record.trials.get(wanted) or self._record.runs[wanted]
            return recorded(found, self._record, ExperimentFolder(self.folder))
        words = f"There is no trial {wanted} in {self.id}; it has {len(self.trials)}, counted from 0."
        raise NotFoundError(words, wanted=wanted)

    def curves(self, trial: Trial | int) -> dict[str, Curve]:
        """Return all reported points of a trial by metric name, read from the journal; also `trial.curves`."""
        return self.trial(trial).curves

    def logs(self, trial: Trial | int, stream: str = "stdout", *, rank: int = 0) -> str:
        """Return the captured output of a trial, of one rank if it ran on a gang; also `trial.logs`."""
        output = self.trial(trial).output(stream, rank=rank)
        gang = self.asked.placement.gang
        ranks = None if gang.size is None else gang.size + gang.servers
        if not output and ranks is not None and rank >= ranks:
            raise InvalidInputError(
                f"rank={rank} was given; trials of {self.id} ran on {count(ranks, 'rank')}, from 0."
            )
        return output

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
        """Add tags; `cargobike ls --tag` finds the experiment by them.

        Raises:
            InvalidInputError: If none is given, or one cannot be a tag.
        """
        _check_any("add_tag", tags)
        self._annotate(add=tags)

    def remove_tag(self, *tags: str) -> None:
        """Remove tags; says so of those that it does not have.

        Raises:
            InvalidInputError: If none is given.
        """
        _check_any("remove_tag", tags)
        there = self.tags
        for tag in tags:
            if tag not in there:
                log.warning("%s has no tag %r.%s", self.id, tag, nearest(str(tag), there))
        self._annotate(remove=tags)

    def add_note(self, text: str) -> None:
        """Add a note.

        Raises:
            InvalidInputError: If it is no text, or there is nothing in it.
        """
        if not read_text("a note", text).strip():
            raise InvalidInputError("The note is empty: give the text to keep.")
        self._annotate(note=text)

    def _annotate(self, *, add: Sequence[str] = (), remove: Sequence[str] = (), note: str = "") -> Annotations:
        from cargobike.store.history.annotations import annotate  # noqa: PLC0415 - not every result is looked at closely

        return annotate(ExperimentFolder(self.folder), add=add, remove=remove, note=note)

    @property
    def plot(self) -> Plots:
        """Figures: `result.plot.best_so_far()`, `.slices()`, `.timeline()` and more; needs Plotly."""
        from cargobike.analysis.plots import Plots  # noqa: PLC0415 - loads NumPy, which only figures need

        return Plots(self._record, self.curves, self._annotate().hidden)

    def importance(self, *, step: int | None = None, metric: str | None = None) -> Importance:
        """Tell how much of the score's variance each parameter causes; trials that people have hidden do not count.

        Args:
            metric: Another metric than the objective, or one of several objectives; by default the first.
            step: Take what was reported at this step instead of final scores, so that stopped trials count too.

        Raises:
            InvalidInputError: If fewer than ten trials have a score.
        """
        from cargobike.analysis.importance import importance  # noqa: PLC0415

        return importance(self._seen(), step=step, metric=metric)

    def ablation(self, *, confidence: float = 0.95) -> AblationTable:
        """Tell what each component of an ablation is worth, with confidence intervals, the most valuable first.

        Raises:
            InvalidInputError: If the experiment's optimizer was not `Ablation`.
        """
        from cargobike.analysis.ablation import ablation_table  # noqa: PLC0415

        return ablation_table(self._seen(), confidence=confidence)

    def report(self, path: str | os.PathLike[str], *, pareto: Sequence[tuple[str, str]] = ()) -> Path:
        """Write one page with everything about the experiment into one file, and return its path; needs Plotly.

        Args:
            path: Where to write it; a file that is there is replaced.
            pareto: Pairs of metrics to draw against each other, such as `[("accuracy", "latency_ms")]`.
        """
        from cargobike.experiments.results.report import write_report  # noqa: PLC0415

        return write_report(self._record, ExperimentFolder(self.folder), path, pareto=pareto)

    def _seen(self) -> ExperimentRecord:
        """Return what the journal says, without the trials that people have hidden."""
        return visible(self._record, self._annotate().hidden)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row for each trial; needs pandas."""
        import pandas as pd  # noqa: PLC0415 - heavy, and optional

        return pd.DataFrame(list(self._rows()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for trial in self.trials:
            usage = trial.usage
            yield {
                "trial": trial.number,
                "state": trial.state.value,
                "value": trial.value,
                **({"spread": trial.spread, "failures": trial.failures} if trial.repeats else {}),
                "attempts": trial.attempts,
                "duration_s": trial.duration_s,
                "mean_cpus": usage.mean_cpus,
                "peak_memory_bytes": max(trial.peak_memory_bytes or 0, usage.peak_memory_bytes or 0) or None,
                **{f"params.{name}": value for name, value in trial.params.items()},
                **{f"metrics.{name}": value for name, value in trial.metrics.items()},
                **{f"extras.{name}": value for name, value in trial.extras.items()},
            }

    def _repr_html_(self) -> str:
        """Return the result as a notebook shows it."""
        from cargobike.experiments.results.summary import summary_html  # noqa: PLC0415

        return summary_html(self._seen(), hidden=len(self._record.trials) - len(self._seen().trials))

    def __repr__(self) -> str:
        return f"<Result {self}>"

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts.items()) or "no trials"
        best = "no best trial"
        if self.best is not None:
            score = f"{number(self.best.value)}{_spread(self.best)}"
            best = f"best {score} (trial {self.best.number}) with {self.best.params}"
        return f"{self.name} [{self.id}]: {self.state}, {counts}; {best}"


def _number_of(given: object) -> int:
    whole = whole_by_type(given)
    if whole is not None:
        return whole
    hint = " `result.best` is None if no trial has completed." if given is None else ""
    raise InvalidInputError(f"a trial, or its number, is needed; {describe(given)} was given.{hint}")


def _check_any(call: str, tags: Sequence[object]) -> None:
    if not tags:
        raise InvalidInputError(f'{call} was given no tag; give one or several: {call}("baseline").')


def _spread(trial: Trial) -> str:
    return "" if trial.spread is None else f" ± {number(trial.spread)}"


def find_result(experiment: ExperimentLike) -> Result:
    """Return the result of an experiment of the project in use; see `experiment.load`."""
    folder = find_experiment(experiment)
    return Result.from_record(read_record(folder), folder)


def open_result(experiment_id: str, project: ProjectFolder) -> Result:
    """Return the result of an experiment of any project."""
    folder = project.experiment(experiment_id)
    if not folder.journal.exists():
        folder = find_experiment(experiment_id)  # says what there is, and brings here what lies on shared storage
    return Result.from_record(read_record(folder), folder)
