"""What a journal says about a run: its facts, folded once for the driver, commands, pages, schedules and exporters.

    folder = folder_of(project, "20261117-…")     where it lies
    record = read_run(folder)                      everything that is known
    for record in list_runs(project): …            all runs, the newest first
    find_run("last" | id | beginning of an id, project)

`RunRecord.state` is what the journal says; `state_of(record)` also knows whether its driver is alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.errors import NotFoundError, StoreError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder, ThingFolder
from cargobike.core.values.exact import unpack_exactly
from cargobike.pipelines.facts import (
    RUN_FACTS,
    AnyRunFact,
    AttemptEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    RunState,
    StepAsked,
    StepEnded,
    StepKind,
    StepStarted,
    StepState,
)
from cargobike.pipelines.kind import RUNS
from cargobike.pipelines.values.value import Value
from cargobike.store.files.locking import is_held
from cargobike.store.files.mirror import refresh
from cargobike.store.journal.journal import JournalReader
from cargobike.store.journal.remembering import journals_of


class RunFolder(ThingFolder, frozen=True):
    """The folder of one run."""

    @property
    def processes_lock(self) -> Path:
        """Held by the processes of steps as long as one of them lives."""
        return self.root / "processes.lock"

    def step_place(self, step: int) -> str:
        """Return where the files of a step lie in this folder."""
        return f"steps/{step:05d}"

    def step(self, step: int) -> Path:
        """Return the folder of a step."""
        return self.root / self.step_place(step)

    def output(self, step: int, stream: str) -> Path:
        """Return what a step printed: `stdout` or `stderr` of all attempts, in order."""
        return self.step(step) / f"{stream}.log"


class StepRecord(msgspec.Struct):
    """A step as the journal tells it; the attributes are those of the facts."""

    number: int
    name: str
    kind: StepKind = StepKind.FUNCTION
    code: str = ""
    inputs: dict[str, Value] = {}
    digest: str = ""
    after: tuple[int, ...] = ()
    function: str = ""
    state: StepState = StepState.WAITING
    asked_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    attempt: int = 0
    attempts: list[AttemptEnded] = []
    token: str = ""
    is_open: bool = False
    """Whether an attempt began of which the journal does not say how it ended."""
    result: Value | None = None
    error: str = ""
    failure: Value | None = None
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0
    source: str = ""


class RunRecord(msgspec.Struct):
    """A run as its journal tells it.

    Attributes:
        started: The first fact.
        folder: Where it lies.
        state: What became of it; `running` also if its driver died without a word.
        steps: All steps by number.
        code: The fingerprints of its code that hold now.
        retried: The failed steps that are tried again when it is resumed.
        resumed: When drivers took it up again.
    """

    started: RunStarted
    folder: RunFolder
    state: RunState = RunState.RUNNING
    steps: dict[int, StepRecord] = {}
    code: dict[str, str] = {}
    ended_at: float | None = None
    result: Value | None = None
    error: str = ""
    retried: tuple[int, ...] = ()
    resumed: list[float] = []
    pid: int = 0
    host: str = ""
    offset: int = 0
    """How much of the journal it was read from."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.started.id

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.started.pipeline

    @property
    def params(self) -> dict[str, Any]:
        """What the pipeline was called with."""
        params: dict[str, Any] = unpack_exactly(self.started.params)
        return params

    @property
    def seconds(self) -> float:
        """From the first fact to the last end; for one that runs, to the last fact of a step."""
        return max(0.0, (self.ended_at or self.last_at) - self.started.at)

    @property
    def last_at(self) -> float:
        """When the last thing happened."""
        return max([self.started.at, *map(self.last_step_at, self.steps), *self.resumed])

    def last_step_at(self, step: int) -> float:
        """When the last thing happened to a step."""
        record = self.steps[step]
        return record.ended_at or record.started_at or record.asked_at

    def counted(self) -> dict[StepState, int]:
        """Return how many steps are in each state."""
        counts: dict[StepState, int] = {}
        for step in self.steps.values():
            counts[step.state] = counts.get(step.state, 0) + 1
        return counts

    def apply(self, fact: AnyRunFact) -> None:
        """Add a fact."""
        if isinstance(fact, StepAsked):
            before = self.steps.get(fact.step)
            self.steps[fact.step] = StepRecord(
                number=fact.step,
                name=fact.name,
                kind=fact.kind,
                code=fact.code,
                inputs=fact.inputs,
                digest=fact.digest,
                after=fact.after,
                function=fact.function,
                asked_at=fact.at,
                attempt=0 if before is None else before.attempt,  # files of attempts are never mixed up
            )
        elif isinstance(fact, (StepStarted, AttemptEnded, StepEnded)):
            step = self.steps.get(fact.step)
            if step is not None:
                _apply_to_step(step, fact)
        elif isinstance(fact, RunEnded):
            self.state, self.result, self.error = fact.state, fact.result, fact.error
            self.ended_at, self.retried = fact.at, fact.failed
            for step in self.steps.values():
                if step.state in (StepState.RUNNING, StepState.WAITING):
                    step.state = StepState.INTERRUPTED
        elif isinstance(fact, RunResumed):
            self.state, self.ended_at, self.error = RunState.RUNNING, None, ""
            self.resumed.append(fact.at)
            self.code = fact.code or self.code
            self.pid, self.host = fact.pid, fact.host


def _apply_to_step(step: StepRecord, fact: StepStarted | AttemptEnded | StepEnded) -> None:
    if isinstance(fact, StepStarted):
        step.state, step.attempt, step.token = StepState.RUNNING, fact.attempt, fact.token
        step.started_at, step.ended_at, step.is_open = fact.at, None, True
    elif isinstance(fact, AttemptEnded):
        step.state, step.is_open = StepState.WAITING, False
        step.attempts.append(fact)
    else:
        step.state, step.result, step.error, step.failure = fact.state, fact.result, fact.error, fact.failure
        step.seconds, step.cpu_s, step.peak_memory_bytes = fact.seconds, fact.cpu_s, fact.peak_memory_bytes
        step.attempt = fact.attempt or step.attempt
        step.ended_at, step.source, step.is_open = fact.at, fact.source, False


def folder_of(project: ProjectFolder, run_id: str) -> RunFolder:
    """Return the folder of a run, which may not exist."""
    return RunFolder(project.root / RUNS.place(run_id))


def fold(facts: Iterable[AnyRunFact], folder: RunFolder) -> RunRecord:
    """Fold facts into a record; the first one is a `RunStarted`."""
    iterator = iter(facts)
    first = next(iterator, None)
    if not isinstance(first, RunStarted):
        raise StoreError(f"The journal of run {folder.id} does not begin as one; is {folder.journal} damaged?")
    record = RunRecord(first, folder, code=first.code, pid=first.pid, host=first.host, steps={}, resumed=[])
    for fact in iterator:
        record.apply(fact)
    return record


def read_run(folder: RunFolder) -> RunRecord:
    """Return what the journal of a run says.

    Raises:
        NotFoundError: If there is no such run.
        StoreError: If its journal is damaged.
    """
    reader = JournalReader(folder.journal, RUN_FACTS, of=folder.id)
    facts = reader.read_new()
    if not facts:
        raise NotFoundError(f"There is no run {folder.id!r} in {folder.project.root}.", wanted=folder.id)
    record = fold(facts, folder)
    record.offset = reader.offset
    return record


def read_on(record: RunRecord) -> None:
    """Add what the journal says since the record was read."""
    reader = JournalReader(record.folder.journal, RUN_FACTS, record.offset)
    for fact in reader.read_new():
        record.apply(fact)
    record.offset = reader.offset


def state_of(record: RunRecord) -> RunState:
    """Return what became of a run; `interrupted` if its driver is gone without a word."""
    if record.state is RunState.RUNNING and not is_held(record.folder):
        return RunState.INTERRUPTED
    return record.state


def run_folders(project: ProjectFolder) -> Iterator[RunFolder]:
    """Yield the folders of all runs, in the order of their names."""
    refresh(project)
    root = project.root / RUNS.folder
    for name, _, _ in journals_of(RUNS, project.root):
        yield RunFolder(root / name)


def list_runs(project: ProjectFolder, pipeline: str = "") -> list[RunRecord]:
    """Return all runs of a project, or of one pipeline, the newest first; damaged ones are left out."""
    records: list[RunRecord] = []
    for folder in run_folders(project):
        try:
            record = _seen_run(folder)
        except (StoreError, NotFoundError, OSError):
            continue
        if not pipeline or record.pipeline == pipeline:
            records.append(record)
    return sorted(records, key=lambda record: (record.started.at, record.id), reverse=True)


_seen: dict[Path, tuple[int, int, RunRecord]] = {}


def _seen_run(folder: RunFolder) -> RunRecord:
    """Return what the journal of a run says, read once for as long as it is the same: servers list again and again."""
    status = folder.journal.stat()
    size, changed_ns, record = _seen.get(folder.root, (0, 0, None))
    if record is None or (size, changed_ns) != (status.st_size, status.st_mtime_ns):
        record = read_run(folder)
        _seen[folder.root] = status.st_size, status.st_mtime_ns, record
    return record


def find_run(name: str, project: ProjectFolder) -> RunRecord:
    """Return the run that a person means: `last`, an id, the beginning of one, or the last run of a pipeline.

    Raises:
        NotFoundError: If there is no such run, or several begin so.
    """
    exact = folder_of(project, name)
    if name != "last" and RUNS.id.fullmatch(name):
        refresh(project)
        if exact.journal.is_file():
            return read_run(exact)
    records = list_runs(project)
    if name == "last" and records:
        return records[0]
    matches = [record for record in records if record.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    ofs = [record for record in records if record.pipeline == name]
    if not matches and ofs:
        return ofs[0]
    ids = [record.id for record in matches or records]
    if not ids:
        raise NotFoundError(
            f"There is no run in {project.root} yet; `cargobike pipelines run FILE.py:FUNCTION` makes one.", wanted=name
        )
    if matches:
        raise NotFoundError(f"Several runs begin with {name!r}: {', '.join(ids[:5])}.", wanted=name, nearest=ids)
    raise NotFoundError(
        f"There is no run {name!r} in {project.root}.{nearest(name, ids)} "
        "`cargobike pipelines ls` lists all, `last` is the newest.",
        wanted=name,
        nearest=nearest_names(name, ids),
    )
