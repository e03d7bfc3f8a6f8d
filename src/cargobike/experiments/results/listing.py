"""The experiments of a project, each in short: what `experiment.list` returns."""

from __future__ import annotations

from cargobike.core.asked import Asked
from cargobike.core.errors import StoreError
from cargobike.core.facts import ExperimentStarted
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.records import ExperimentState, Params
from cargobike.experiments.finding import experiment_ids
from cargobike.experiments.index.index import ExperimentRow
from cargobike.experiments.index.opening import open_index
from cargobike.experiments.reading import read_record
from cargobike.store.files.locking import is_held
from cargobike.store.files.project import current


class Rows:
    """What the index says about the experiments of one list, read for all of them when the first is looked at."""

    def __init__(self, project: ProjectFolder) -> None:
        self._project = project
        self._rows: dict[str, ExperimentRow] | None = None

    def __getitem__(self, experiment_id: str) -> ExperimentRow:
        if self._rows is None:
            self._rows = _indexed(self._project)
        if experiment_id not in self._rows:
            self._rows[experiment_id] = _from_journal(self._project.experiment(experiment_id))
        return self._rows[experiment_id]


class ExperimentSummary(str):
    """An experiment in short: its id, which works wherever one is asked for, and what a list shows about it.

    It is a string, the id, so that `experiment.load(summary)` and everything else that takes an id takes it too. The
    other fields are as they were when the first one of the list was looked at.

    Example:
        >>> from cargobike import experiment
        >>> result = experiment.launch(lambda x: x, {"x": [1, 2]}, name="digits", quiet=True)
        >>> newest = experiment.list()[-1]
        >>> newest.name, newest.best_value, newest.trials, newest == result.id
        ('digits', 2.0, 2, True)
    """

    _rows: Rows

    def __new__(cls, experiment_id: str, rows: Rows) -> ExperimentSummary:
        """Make a summary of one experiment of a list."""
        summary = super().__new__(cls, experiment_id)
        summary._rows = rows
        return summary

    def __getnewargs__(self) -> tuple[str, Rows]:  # type: ignore[override]  # a string's own has no rows
        return str(self), self._rows

    @property
    def _row(self) -> ExperimentRow:
        return self._rows[self]

    @property
    def id(self) -> str:
        """The id as a plain string."""
        return str(self)

    @property
    def name(self) -> str:
        """The name for people."""
        return self._row.name

    @property
    def state(self) -> ExperimentState:
        """Whether it runs, or how it ended."""
        return self._row.state

    @property
    def reason(self) -> str:
        """Why it ended, if there is something to say."""
        return self._row.reason

    @property
    def best_value(self) -> float | None:
        """Value of the best completed trial, `None` if there is none."""
        return self._row.best_value

    @property
    def best_params(self) -> Params | None:
        """Parameters of the best completed trial, `None` if there is none."""
        return self._row.best_params

    @property
    def best_trial(self) -> int | None:
        """Number of the best completed trial, `None` if there is none."""
        return self._row.best_trial

    @property
    def trials(self) -> int:
        """How many trials were suggested."""
        return self._row.trials

    @property
    def counts(self) -> dict[str, int]:
        """How many trials are in which state."""
        return {state.value: count for state, count in self._row.counts.items() if count}

    @property
    def started_at(self) -> float:
        """Seconds since the epoch when it began."""
        return self._row.started_at

    @property
    def ended_at(self) -> float | None:
        """Seconds since the epoch when it ended, `None` if it has not."""
        return self._row.ended_at

    @property
    def duration_s(self) -> float:
        """Seconds from its start to its end, or to the latest fact while there is no end."""
        return self._row.duration_s

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that people have given it."""
        return self._row.tags

    @property
    def problem(self) -> str:
        """Why its journal could not be read to the end, or an empty string."""
        return self._row.problem

    def __repr__(self) -> str:
        fields = f"name={self.name!r}, state={self.state.value!r}, best_value={self.best_value!r}, trials={self.trials}"
        return f"ExperimentSummary({str(self)!r}, {fields})"


def list_experiments() -> list[ExperimentSummary]:
    """Return all experiments of the project in use, oldest first."""
    rows = Rows(current())
    return [ExperimentSummary(experiment_id, rows) for experiment_id in experiment_ids()]


def _indexed(project: ProjectFolder) -> dict[str, ExperimentRow]:
    try:
        with open_index(project) as index:
            index.sync()
            return {row.id: row for row in index.experiments()}
    except StoreError:
        return {}  # the index may be out of reach: the journals say the same, more slowly


def _from_journal(folder: ExperimentFolder) -> ExperimentRow:
    try:
        return ExperimentRow.of(read_record(folder))
    except StoreError as error:
        state = ExperimentState.RUNNING if is_held(folder) else ExperimentState.LOST
        at = folder.journal.stat().st_mtime if folder.journal.exists() else 0.0
        header = ExperimentStarted(at=at, id=folder.id, asked=Asked())
        return ExperimentRow(id=folder.id, header=header, state=state, started_at=at, last_at=at, problem=str(error))
