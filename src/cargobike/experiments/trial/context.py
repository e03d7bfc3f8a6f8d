"""What a train function sees of the trial it runs in; the public modules `trial` and `tensorboard` only read it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

from cargobike.core import layout
from cargobike.core.errors import StoreError, TrialPaused, TrialStopped, WaitError
from cargobike.core.records import Direction
from cargobike.core.registering.feeding import Placed
from cargobike.core.running import member
from cargobike.core.running.forks import before_copies
from cargobike.core.running.member import Alone, Gang, Role
from cargobike.core.values.exact import unpack_exactly
from cargobike.core.values.numbers import FIRST_STEP, LAST_STEP, read_metrics, read_whole, step_out_of_range
from cargobike.experiments.trial.checkpoints.surroundings import Remembering
from cargobike.experiments.trial.fed import Fed
from cargobike.experiments.trial.messages import (
    Assignment,
    Drawn,
    ForRunner,
    FromTrial,
    KeptModel,
    Point,
    Published,
    Saved,
    ToTrial,
    Verdict,
    decode_for_runner,
)
from cargobike.experiments.trial.report_names import ReportNames
from cargobike.experiments.trial.sent_reports import Reports, SentReports
from cargobike.workers.program import Seat
from cargobike.workers.wire.inner import Bring, Brought, Keep, Kept
from cargobike.workers.wire.mailbox import Mailbox
from cargobike.workers.wire.messages import Assign, Said, Tell

if TYPE_CHECKING:
    from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
    from cargobike.experiments.trial.checkpoints.files import SavedCheckpoint
    from cargobike.experiments.trial.models import TrialModels

VERDICT_TIMEOUT_S = 600.0
FILES_TIMEOUT_S = 3600.0
_WHAT = {Point: "A report", Published: "What a member of a gang publishes"}


class Context:
    """The surroundings of a train function outside any experiment: rank 0 of 1, a temporary directory.

    A train function can therefore be called and debugged directly; `report` then only checks its arguments.

    Attributes:
        role: What this process does in its gang: `worker`, or `server` for a parameter server.
        rank: Which of those with the same role it is.
        world_size: How many train; parameter servers are not counted.
        local_rank: Which of the workers on this host it is.
        local_world_size: How many they are.
        num_servers: How many parameter servers there are.
        device_index: Which of the visible GPUs is this rank's own, `None` without any.
        options: What the experiment was told about how to train together, the same in every member.
        secret: Known to the members of this attempt only.
        meeting_place: Where the ranks of torch meet, as `address:port`; empty outside a gang.
        began_with: Name of the checkpoint that all ranks of this attempt begin with, empty if there is none; `None` if
            ranks do not have to agree on one.
    """

    number: int = 0
    attempt: int = 1
    role: str = Role.WORKER
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    num_servers: int = 0
    device_index: int | None = None
    seed: int = 0
    force_checkpoints_every_s: float = 0.0
    options: Mapping[str, Any] = MappingProxyType({})
    secret: bytes = b""
    meeting_place: str = ""
    began_with: str | None = None

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        self.params: Mapping[str, Any] = MappingProxyType(dict(params or {}))
        self.last_step: int | None = None
        self._folder: Path | None = None
        self._checkpoints: Checkpoints | None = None
        self._direction: Direction = "max"
        self._start_from: str | None = None
        self._gang: Gang | None = None
        self._fed: Fed | None = None

    @property
    def gang(self) -> Gang:
        """The members that run the trial together, for exchanging small values."""
        if self._gang is None:
            self._gang = self._meet()
        return self._gang

    def _meet(self) -> Gang:
        return Alone()

    @property
    def id(self) -> str:
        """The trial's name."""
        return name_of(self.number)

    @property
    def meeting(self) -> str:
        """A key that differs between attempts, so that gangs in the same process are told apart."""
        return f"{self.id}-{self.attempt}"

    @property
    def folder(self) -> Path:
        """The trial's own folder; made when first asked for."""
        if self._folder is None:
            import tempfile  # noqa: PLC0415 - only code outside an experiment needs it
            from shutil import rmtree  # noqa: PLC0415

            self._folder = Path(tempfile.mkdtemp(prefix="cargobike-"))
            weakref.finalize(self, rmtree, self._folder, ignore_errors=True)
        return self._folder

    @property
    def logdir(self) -> Path:
        """Where the train function may write TensorBoard files."""
        path = self.folder / layout.LOGS
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def files(self) -> Path:
        """Where the trial's artifacts lie; the working directory, if the trial has one of its own."""
        return self.folder / layout.FILES

    def artifact(self, path: Any = None, name: str | None = None, *, text: str | None = None) -> Path:
        """Keep a file, a text, an image, a figure or a table in the trial's files."""
        from cargobike.experiments.trial.artifacts import keep_artifact  # noqa: PLC0415 - most functions keep none

        return keep_artifact(path, self.files, name, text)

    @property
    def model(self) -> TrialModels:
        """What keeps models with the trial."""
        from cargobike.experiments.trial.models import TrialModels  # noqa: PLC0415 - most functions keep none

        return TrialModels(None, is_mine=self.rank == 0, announce=lambda _: None)

    @property
    def checkpoint(self) -> Checkpoints:
        """The trial's checkpoints."""
        if self._checkpoints is None:
            self._checkpoints = self._open_checkpoints()
        return self._checkpoints

    @property
    def checkpoints_root(self) -> Path:
        """Where the trial's checkpoints are, or those of a parameter server's share."""
        if self.role == Role.SERVER:
            return self.folder / layout.SERVERS / str(self.rank)
        return self.folder / layout.CHECKPOINTS

    def finish(self) -> None:
        """Wait for checkpoints that are still being written."""
        if self._checkpoints is not None:
            self._checkpoints.wait()

    def settle(self) -> None:
        """Finish what was begun, however the function ended."""
        if self._checkpoints is not None:
            self._checkpoints.settle()

    def _open_checkpoints(self) -> Checkpoints:
        # Most functions save none, and these modules take a worker longest to import.
        from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints  # noqa: PLC0415

        return Checkpoints(
            self.checkpoints_root,
            began_with=self.began_with,
            gang=self.gang if self.role != Role.SERVER and self.world_size > 1 else None,
            rank=self.rank if self.role != Role.SERVER else 0,
            on_saved=self._announce,
            current_step=lambda: self.last_step,
            remembering=Remembering(self._reports_made, self._go_on_after, self._place, self._go_on_at),
            direction=self._direction,
            start_from=Path(self._start_from) if self._start_from else None,
            force_every_s=self.force_checkpoints_every_s,
        )

    def _reports_made(self) -> Reports | None:
        """Return the reports that were made so far, for a checkpoint to remember."""
        return None

    def _go_on_after(self, reports: Reports | None) -> None:
        """Count on from the reports that an earlier attempt had made, and make those again that may be lost."""

    def feed(self, data: object) -> None:
        """Keep the place of what the function is fed with in checkpoints, if it has one."""
        if isinstance(data, Placed):
            began = time.monotonic()
            self._fed = Fed(
                data,
                lambda rows, waited_s: self._drew(time.monotonic() - began, rows, waited_s),
                self.gang if self.world_size > 1 and (self.began_with or self._start_from) else None,
            )

    def _place(self) -> dict[str, Any] | None:
        return None if self._fed is None else self._fed.place()

    def _go_on_at(self, place: dict[str, Any]) -> None:
        if self._fed is not None:
            self._fed.go_on(place)

    def _drew(self, after_s: float, rows: int, waited_s: float) -> None:
        """Tell others what was drawn."""

    @property
    def should_stop(self) -> bool:
        """Whether the trial was asked to stop; the next `report` will raise."""
        return False

    def report(self, metrics: Mapping[str, Any], step: int | None) -> None:
        """Check the values and count the step."""
        read_metrics(metrics)
        self._next_step(step)

    def _next_step(self, step: int | None) -> int:
        if step is None:
            step = 0 if self.last_step is None else self.last_step + 1
        elif type(step) is not int:
            step = read_whole(step)
        if not FIRST_STEP <= step <= LAST_STEP:
            raise step_out_of_range(step)
        self.last_step = step
        return step

    def _announce(self, saved: SavedCheckpoint) -> None:
        """Tell others about a checkpoint."""


class TrialContext(Context):
    """The surroundings of a train function that runs as a trial in a runner."""

    def __init__(
        self,
        assign: Assign[Assignment],
        seat: Seat,
        *,
        direction: Direction,
        options: Mapping[str, Any] | None = None,
        names: ReportNames | None = None,
    ) -> None:
        assignment = assign.body
        super().__init__(unpack_exactly(assignment.params))
        self.number = assign.task
        self.attempt = assign.attempt
        self.rank = assignment.rank
        self.world_size = assignment.world_size
        self.seed = assignment.seed
        self._seat = seat
        self._direction = direction
        if assignment.start_from is not None:
            self._start_from = f"{seat.project}/{assignment.start_from}"
        milestones = assignment.milestones
        self._every = milestones == "every"
        self._milestones: list[int] = [] if isinstance(milestones, str) else sorted(milestones, reverse=True)
        self._names = names if assignment.rank == 0 else None  # only rank 0 is judged
        self._reports = 0
        self._reports_before = assignment.reports
        self._saves = 0
        self._saves_first = False
        self._is_pausing = False
        self._letters: Mailbox[ForRunner] | None = None
        self._sent = SentReports(self.number, self.attempt, self._say, lambda: self._mailbox)
        self.options = MappingProxyType(dict(options or {}))
        membership = self.membership = assignment.membership
        if membership is not None:
            self.role = membership.role
            self.local_rank = membership.local_rank
            self.local_world_size = membership.local_world_size
            self.num_servers = len(membership.roles) - assignment.world_size
            self.secret = membership.secret

    @property
    def _mailbox(self) -> Mailbox[ForRunner]:
        """What the driver says; made when it is first needed, for most trials of a random search never hear of it."""
        with self._sent.lock:
            if self._letters is None:
                self._letters = Mailbox(self._seat.agent, decode_for_runner)
            return self._letters

    def _meet(self) -> Gang:
        from cargobike.experiments.trial.gang import Together  # noqa: PLC0415

        if self.membership is None:
            return super()._meet()
        return Together(
            self.number,
            self.attempt,
            self.membership,
            say=self._say,
            mailbox=self._mailbox,
            is_asked_to_end=lambda: self.should_stop,
            driver_host=self._seat.driver_host,
        )

    def _drew(self, after_s: float, rows: int, waited_s: float) -> None:
        self._say(Drawn(after_s, rows, waited_s))

    def _say(self, body: FromTrial) -> None:
        """Tell the driver something about this attempt."""
        self._seat.send(Said(self.number, self.attempt, body), _WHAT.get(type(body), "A message"))

    @property
    def folder(self) -> Path:
        """The trial's own folder."""
        if self._folder is None:
            self._folder = Path(self._seat.folder, layout.TRIALS, self.id)
        return self._folder

    @property
    def files(self) -> Path:
        """Where the trial's artifacts lie: beside the folders of trials, so that an empty one costs little."""
        return self.folder.parent.parent / layout.FILES / self.id

    @property
    def model(self) -> TrialModels:
        """What keeps models with the trial, until it has completed."""
        from cargobike.experiments.trial.models import TrialModels  # noqa: PLC0415 - most functions keep none

        return TrialModels(self.files, is_mine=self._is_recorded, announce=lambda name: self._say(KeptModel(name)))

    @property
    def should_stop(self) -> bool:
        """Whether the trial was asked to stop."""
        return self._seat.is_asked_to_stop

    def report(self, metrics: Mapping[str, Any], step: int | None) -> None:
        """Send the values on their way; wait only at a milestone."""
        if self._is_pausing:
            raise TrialPaused(f"trial {self.id} was paused at step {self.last_step}")
        values = read_metrics(metrics)
        with self._sent.lock:
            step = self._next_step(step)
            self._reports += 1
            waits = self._every or bool(self._milestones and step >= self._milestones[-1])
            if waits and self._names is not None:
                waits = self._names.can_be_judged(values, step)
            if self._is_recorded:
                self._sent.send(step, values, waits=waits)
            else:
                self._say(Point(step, values, waits))
        if waits:
            self._await_verdict(step)
        if self._seat.is_asked_to_stop:
            raise TrialStopped(f"trial {self.id} was asked to stop")

    @property
    def _is_recorded(self) -> bool:
        """Whether the reports of this worker are those of the trial."""
        return self.rank == 0 and self.role != Role.SERVER

    def _reports_made(self) -> Reports | None:
        return self._sent.describe(self.last_step) if self._is_recorded else None

    def _go_on_after(self, reports: Reports | None) -> None:
        if not self._reports and self.attempt > 1 and self._is_recorded:
            self.last_step = self._sent.take_up(reports or Reports(self._reports_before, self.last_step))

    def _await_verdict(self, step: int) -> None:
        while self._milestones and step >= self._milestones[-1]:
            self._milestones.pop()

        def is_meant(message: ForRunner) -> bool:
            return self._is_mine(message) and isinstance(message.body, Verdict) and message.body.step == step

        message = self._mailbox.wait(is_meant, VERDICT_TIMEOUT_S)
        if not isinstance(message, Tell) or not isinstance(message.body, Verdict):
            raise WaitError(
                f"the driver has not said for {VERDICT_TIMEOUT_S:g} s what to do with trial {self.id} at step {step}"
            )
        self._sent.confirmed(self._sent.count)  # the driver has seen this one, and so all before
        decision = message.body.decision
        if decision == "stop":
            raise TrialStopped(f"trial {self.id} was stopped at step {step}")
        if decision == "pause" and not self._is_about_to_save:
            raise TrialPaused(f"trial {self.id} was paused at step {step}")
        self._is_pausing = decision == "pause"

    def _is_mine(self, message: ForRunner) -> TypeGuard[Tell[ToTrial]]:
        """Tell whether a message is for this attempt, not for an earlier one on the same connection."""
        return isinstance(message, Tell) and (message.task, message.attempt) == (self.number, self.attempt)

    @property
    def _is_about_to_save(self) -> bool:
        """Whether the function saves its state after each report: then it may do so before it pauses.

        Otherwise the step that it has just reported would be lost, which at an early milestone is all it has done.
        Ranks of a gang never go on alone.
        """
        saved_each_time = self._saves == self._reports - 1
        return self.world_size == 1 and saved_each_time and not self._saves_first

    def _announce(self, saved: SavedCheckpoint) -> None:
        if self.role == Role.SERVER:
            return  # its share is not a checkpoint of the trial
        path = saved.path.relative_to(self._seat.project).as_posix()
        if self._seat.files_travel:
            self._keep(path)
        self._say(Saved(saved.step, path, saved.size_bytes))
        self._saves += 1
        self._saves_first = self._saves_first or self._reports == 0
        if self._is_pausing:
            raise TrialPaused(f"trial {self.id} was paused at step {self.last_step}")

    def _keep(self, path: str) -> None:
        """Wait until a checkpoint has arrived where it is kept: only then is it safe, and may older ones go."""
        self._seat.send(Keep(path, alone=self.rank == 0))
        answer = self._mailbox.wait(lambda message: isinstance(message, Kept) and message.path == path, FILES_TIMEOUT_S)
        if not isinstance(answer, Kept):
            raise WaitError(f"the checkpoint {path} did not reach the driver within {FILES_TIMEOUT_S:g} s")
        if answer.error:
            raise StoreError(f"The checkpoint {path} could not be kept by the driver: {answer.error}")

    def bring(self, path: str) -> None:
        """Make sure that a file of the project, named from there, is on this machine."""
        if not self._seat.files_travel:
            return
        self._seat.send(Bring(path))
        answer = self._mailbox.wait(
            lambda message: isinstance(message, Brought) and message.path == path, FILES_TIMEOUT_S
        )
        if not isinstance(answer, Brought):
            raise WaitError(f"{path} did not come from the driver within {FILES_TIMEOUT_S:g} s")
        if answer.error:
            raise StoreError(f"{path} could not be fetched from the driver: {answer.error}")


_outside = Context()
_current: Context | None = None
_make: Callable[[], Context] | None = None
_making = threading.Lock()


def current() -> Context:
    """Return the context of the trial that runs in this process, or the one for code outside any trial."""
    if _current is None and _make is not None:
        _make_now()
    return _outside if _current is None else _current


def _make_now() -> None:
    with _making:  # several threads may be the first to ask
        if _current is None and _make is not None:
            enter(_make())


def is_inside() -> bool:
    """Tell whether a trial runs in this process."""
    return _current is not None or _make is not None


def enter(context: Context | None) -> None:
    """Make a context, and the member that this process is, the current one; `None` to leave it."""
    global _current, _make
    _current, _make = context, None
    member.enter(context)


def enter_later(make: Callable[[], Context]) -> None:
    """Have a context be the current one that is made when it is first asked for, or before a process is forked.

    A copy of the process that reports, and the process itself, then count their reports together.
    """
    global _current, _make
    _current, _make = None, make
    member.enter_later(current)


def name_of(trial: int) -> str:
    """Return the name of a trial by its number."""
    return f"{trial:04d}"


before_copies(current)
