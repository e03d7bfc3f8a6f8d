"""Whatever workers say, in whatever order, the driver's loop comes to an end; in virtual time."""

from __future__ import annotations

import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Resources
from cargobike.core.running.ending import Ending, EndKind
from cargobike.core.running.member import Role
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.experiments.display.display import QuietDisplay
from cargobike.experiments.driving.loop import Loop, Parts
from cargobike.experiments.driving.optimizer_thread import OptimizerThread
from cargobike.experiments.driving.request import Patience
from cargobike.experiments.driving.worker_pool import WorkerPool
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.trial import messages
from cargobike.search.optimizers.listed import Listed
from cargobike.search.spaces.space import Searchspace
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact
from cargobike.workers.wire import messages as wire
from cargobike.workers.wire.ways import Ticket

TRIALS = 4
TIMEOUT_S = 10.0
LONGEST_S = 5000.0
"""What all trials may take together, each with all its attempts and all the patience that there is."""


class Handle(WorkerHandle):
    """A worker that lives until it is killed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_killed = False

    def poll(self) -> Ending | None:
        return Ending(EndKind.KILLED, "was killed") if self.is_killed else None

    def kill(self) -> None:
        self.is_killed = True


class World(Engine):
    """The clock, the wire and the engine of a driver: everything that a loop talks to."""

    name = "world"
    address = "nowhere"

    def __init__(self, choices: list[int], manners: str) -> None:
        self.time_s = 1000.0
        self.choices = deque(choices)
        self.manners = manners
        self.handles: dict[str, Handle] = {}
        self.silent: set[str] = set()
        self.jobs: dict[str, tuple[int, int]] = {}
        self.inbox: list[tuple[str, Any]] = []
        self.cut: list[str] = []
        self.next_beat = self.time_s
        self.said = 0

    # -- the clock -----------------------------------------------------------------------------------------------

    def now(self) -> float:
        assert self.time_s < 1000.0 + LONGEST_S, "the search hangs"
        return self.time_s

    # -- the engine ----------------------------------------------------------------------------------------------

    def start_worker(self, spec: WorkerSpec) -> Handle:
        self.handles[spec.name] = Handle(spec.name)
        if self.choices and self.choices[0] % 5 == 4:
            self.silent.add(spec.name)
        else:
            self._say(spec.name, wire.Hello(spec.name, 1, "host", "3.11", "1"))
        return self.handles[spec.name]

    def capacity(self, resources: Resources) -> int:
        return 2

    def shutdown(self, timeout_s: float = 5.0) -> None:
        pass

    # -- the wire ------------------------------------------------------------------------------------------------

    @property
    def has_mail(self) -> bool:
        return True

    def watch(self, fd: int) -> None:
        pass

    def flush(self) -> None:
        pass

    def acknowledge_all(self) -> None:
        pass

    def issue(self, worker: str) -> Ticket:
        return Ticket("tcp://driver:1")

    def forget(self, worker: str) -> None:
        self.jobs.pop(worker, None)

    def poll(self, timeout_ms: int) -> bool:
        if timeout_ms and not self.inbox:
            self.time_s += timeout_ms / 1000
            self._go_on()
        return bool(self.inbox or self.cut)

    def receive(self) -> tuple[list[tuple[str, Any]], list[str]]:
        heard, self.inbox = self.inbox, []
        cut, self.cut = self.cut, []
        alive = [(name, message) for name, message in heard if not self.handles[name].is_killed]
        self.said += len(alive)
        return alive, cut

    def send(self, worker: str, message: Any) -> None:
        if isinstance(message, wire.Assign):
            self.jobs[worker] = (message.task, message.attempt)
        elif isinstance(message, wire.Halt) and self.manners == "obey":
            self._say(worker, wire.Died(message.task, message.attempt, -9, halted=True, killed=True))
        elif isinstance(message, wire.Release) and self.manners == "obey":
            self._say(worker, wire.Bye())

    # -- the workers ---------------------------------------------------------------------------------------------

    def _say(self, worker: str, message: Any) -> None:
        self.inbox.append((worker, message))

    def _go_on(self) -> None:
        living = [name for name, handle in self.handles.items() if not handle.is_killed and name not in self.silent]
        if self.choices and living:
            choice = self.choices.popleft()
            worker = living[choice % len(living)]
            self._say_something(worker, choice // len(living))
        elif self.manners != "silence" and self.time_s >= self.next_beat:
            self.next_beat = self.time_s + 1.0
            for worker in living:
                self._say(worker, wire.Beat())

    def _say_something(self, worker: str, choice: int) -> None:
        jobs = [(trial, attempt) for trial in (0, 1, TRIALS - 1, 99, -1, 2**60) for attempt in (1, 2, 0)]
        own = self.jobs.get(worker, (0, 1))
        trial, attempt = own if choice % 3 else jobs[choice // 3 % len(jobs)]
        choice //= 3
        outcome: Any = ["completed", "stopped", "paused", "failed", "lost"][choice // 13 % 5]
        step = choice // 13 % 7 - 1
        end = messages.AttemptEnd(outcome, 1.0 if outcome == "completed" else None, is_symptom=choice % 2 == 0)
        numbers: Any = {"number": (0, 1, 3, 2**53)[choice % 4], "made_in": choice % 3, "asks": choice % 5 == 0}
        point = messages.Point(step, {"loss": 1.0}, waits=choice % 2 == 0, **numbers)
        words: list[Any] = [
            wire.Hello(worker, 1, "host", "3.11", "1"),
            wire.Beat(),
            wire.Said(trial, attempt, point),
            wire.Said(trial, attempt, point),
            wire.Said(trial, attempt, messages.Saved(step, "../../etc/passwd", -1)),
            wire.Said(trial, attempt, messages.Published("x", b"")),
            wire.Said(trial, attempt, messages.Wanted("x", of="nobody", at_once=True)),
            wire.Ended(trial, attempt, end),
            wire.Died(trial, attempt, choice % 600 - 300, halted=choice % 2 == 0),
            wire.Quiet(trial, attempt, float(step)),
            wire.Output(trial, "stdout", b"text"),
            wire.Bye(),
            None,
        ]
        message = words[choice % len(words)]
        for _ in range(1 + (choice % 17 == 16)):
            if message is None:
                self.cut.append(worker)
            else:
                self._say(worker, message)


def run(choices: list[int], manners: str, gang: int) -> tuple[ExperimentRecord, World, set[str]]:
    """Run a search to its end; returns its record, the world, and the folders of trials that it has made."""
    world: Any = World(choices, manners)
    plan = Plan(
        workers=2, gang=gang, is_distributed=gang > 1, num_trials=TRIALS, trial_timeout_s=TIMEOUT_S, fail_fast=0,
        every_report_is_milestone=len(choices) % 2 == 0, max_worker_losses=5,
    )  # fmt: skip
    header = first_fact(at=world.time_s, id="20270115-080000-test", name="test")
    record = ExperimentRecord(header)
    optimizer = Listed([{"x": number} for number in range(TRIALS)])
    optimizer.setup(Searchspace(), num_trials=TRIALS, direction="max", seed=1)
    optimizer.initialize()

    def spec(worker: str, role: Role, ticket: Ticket) -> WorkerSpec:
        return WorkerSpec(name=worker, module="m", config=b"", payload=b"", role=role)

    with tempfile.TemporaryDirectory() as root:
        folder = ExperimentFolder(Path(root) / "experiments" / "20270115-080000-test")
        thread = OptimizerThread(OptimizerSession(optimizer, record.trials, allowed=()))
        with JournalWriter(folder.journal) as journal:
            journal.append([header])
            pool = WorkerPool(world, world, spec, Patience(join_s=20, silence_s=10, reconnect_s=5, end_s=15))
            parts = Parts(
                scheduler=Scheduler(plan, record), optimizer_thread=thread, pool=pool, server=world, journal=journal,
                folder=folder, display=QuietDisplay(), clock=world,
            )  # fmt: skip
            Loop(parts).run()
        thread.close()
        trials = folder.root / "trials"
        return record, world, {path.name for path in trials.iterdir()} if trials.exists() else set()


@pytest.mark.parametrize("gang", [1, 2])
@pytest.mark.parametrize("manners", ["obey", "beat", "silence"])
@settings(max_examples=60)
@given(choices=st.lists(st.integers(0, 100_000), max_size=60))
def test_the_search_ends_whatever_workers_say(manners: str, gang: int, choices: list[int]) -> None:
    record, _, folders = run(choices, manners, gang)
    assert record.state in ("completed", "failed")
    assert record.state == "failed" or [trial.state.is_final for trial in record.trials.values()] == [True] * TRIALS
    assert all(trial.state.is_final or not trial.attempts for trial in record.trials.values())
    assert len(folders) <= TRIALS, "output of trials that do not exist is not kept"


def test_workers_that_only_beat_cost_every_trial_its_time_and_no_more() -> None:
    record, world, _ = run([], "beat", 1)
    assert {trial.state.value for trial in record.trials.values()} == {"failed"}
    assert all("trial_timeout_s=10" in (trial.error or "") for trial in record.trials.values())
    assert world.said > 0
