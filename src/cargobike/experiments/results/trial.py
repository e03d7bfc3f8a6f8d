"""A trial of a result: what is known about it, and the files that it left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Direction, Trial
from cargobike.core.registering.steps import Kept, own_step
from cargobike.core.seen import Attempt
from cargobike.core.values.kinds import read_count
from cargobike.experiments.reading import curves_of
from cargobike.experiments.results.artifacts import Artifacts
from cargobike.experiments.usage import Usage, read_usage

if TYPE_CHECKING:
    from cargobike.core.registering.modelling import KeptModel, Trained
    from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
    from cargobike.experiments.trial.checkpoints.files import SavedCheckpoint


class RecordedTrial(Trial, kw_only=True):
    """A `Trial` as an experiment has recorded it, with everything that it reported, printed, saved and left.

    Files are read when they are asked for.

    Attributes:
        experiment: The folder of its experiment.
        direction: Whether a higher (`"max"`) or a lower (`"min"`) value is better.
    """

    experiment: ExperimentFolder
    direction: Direction = "max"
    _run: Trial | None = None
    _attempts: Sequence[Attempt] = ()

    @property
    def metric(self) -> float | None:
        """Same as `value`."""
        return self.value

    @property
    def curves(self) -> dict[str, Curve]:
        """All reported points by the names of their metrics, read from the journal."""
        return curves_of(self.experiment.journal, self._run or self, self._attempts)

    @property
    def logs(self) -> str:
        """What its rank 0 printed; `output` returns that of any rank."""
        return self.output()

    def output(self, stream: str = "stdout", *, rank: int = 0) -> str:
        """Return what it wrote to `"stdout"` or `"stderr"`, of one rank if it ran on a gang."""
        if stream not in ("stdout", "stderr"):
            raise InvalidInputError(f"stream={stream!r}; allowed are 'stdout' and 'stderr'.")
        path = self.experiment.trial(self.number).output(stream, read_count("rank", rank))
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    @property
    def artifacts(self) -> list[Path]:
        """The files that it left in its working directory or kept with `trial.artifact`; a notebook shows them."""
        return Artifacts(self.experiment.trial(self.number).files)

    @property
    def usage(self) -> Usage:
        """The processors, memory and GPUs that it used over time; a trial of less than a second has no samples."""
        return read_usage(self.experiment.trial(self.number).usage)

    @property
    def checkpoint(self) -> TrialCheckpoint | None:
        """What it saved with `trial.checkpoint.save`: `.load()` and `.path`; `None` if it saved nothing."""
        return TrialCheckpoint(self) if self.has_checkpoint else None

    def trained(self) -> Trained:
        """Return where a model of this trial comes from, and what of it can be kept, for the registry of models."""
        # Few trials become models, and every launch would wait for these.
        from cargobike.experiments.results.trained import trained_by  # noqa: PLC0415

        checkpoint = self.checkpoint
        return trained_by(self, self.experiment, None if checkpoint is None else lambda: checkpoint.load(best=True))

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("trial", f"{self.experiment.id}/{self.number}")

    @own_step("trial.register", recover="cargobike.experiments.results.trained:recover_registered")
    def register(self, name: str, model: Any = None, **said: Any) -> KeptModel:
        """Register a model that this trial made, as the next version of a name; its metrics and origin are recorded.

        Args:
            name: The model's name in the project.
            model: The model; by default what the train function kept with `trial.model.save`, or else the best
                checkpoint, for which `factory=` makes the module if it is a state dict.
            **said: What else `models.register` takes: `files`, `factory`, `metrics`, `signature`, `example`,
                `description`, `tags`.

        Returns:
            The version: `.name`, `.version`, `.promote(alias)`.
        """
        from cargobike.core.registering.modelling import model_keeper  # noqa: PLC0415 - see above

        return model_keeper().register(name, model, trial=self, **said)

    def __repr__(self) -> str:
        parts = [f"number={self.number}", f"state={self.state.value!r}", f"value={self.value!r}"]
        parts += [f"params={self.params!r}", f"metrics={self.metrics!r}"]
        parts += [f"extras={self.extras!r}"] if self.extras else []
        return f"Trial({', '.join(parts)})"


class TrialCheckpoint:
    """The checkpoints of a recorded trial, read-only."""

    def __init__(self, trial: RecordedTrial) -> None:
        self._trial = trial

    def load(self, *, best: bool = False) -> Any:
        """Return the newest intact state, in the form in which it was saved.

        Of a file or folder the path of the stored copy is returned. Pickled objects run code when they are loaded: load
        only from projects whose writers you trust.

        Args:
            best: Whether to take the checkpoint with the best metric instead of the newest.

        Raises:
            NotFoundError: If what was saved is not there any more, or damaged.
        """
        missing = object()
        state = self._checkpoints().load(missing, best=best)
        if state is missing:
            raise self._gone()
        return state

    @property
    def path(self) -> Path:
        """The folder of the newest intact checkpoint.

        Raises:
            NotFoundError: If what was saved is not there any more, or damaged.
        """
        path = self._checkpoints().path
        if path is None:
            raise self._gone()
        return path

    @property
    def step(self) -> int | None:
        """The step that the newest intact checkpoint was saved at."""
        return self._checkpoints().step

    def all(self) -> list[SavedCheckpoint]:
        """Return the checkpoints that were kept, oldest first."""
        return self._checkpoints().all()

    def _checkpoints(self) -> Checkpoints:
        # Saved states are rarely looked at, and every launch would wait for these.
        from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints  # noqa: PLC0415
        from cargobike.store.files.mirror import fetch  # noqa: PLC0415

        experiment = self._trial.experiment
        fetch(experiment, with_checkpoints=True)  # does nothing unless the project is on shared storage
        return Checkpoints(experiment.trial(self._trial.number).checkpoints, direction=self._trial.direction)

    def _gone(self) -> NotFoundError:
        return NotFoundError(f"Trial {self._trial.number} of {self._trial.experiment.id} has no intact checkpoint.")

    def __repr__(self) -> str:
        return f"TrialCheckpoint({str(self._trial.experiment.trial(self._trial.number).checkpoints)!r})"


def recorded(trial: Trial, record: ExperimentRecord, experiment: ExperimentFolder) -> RecordedTrial:
    """Return a trial of a record together with its folder; its fields are shared, not copied."""
    return RecordedTrial(
        *msgspec.structs.astuple(trial),
        experiment=experiment,
        direction=record.header.direction,
        _run=record.runs.get(trial.number),
        _attempts=record.attempts.get(trial.number, ()),
    )
