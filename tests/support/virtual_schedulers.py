"""Schedulers in virtual time: a storage that can kill its caller, runs that are only noted, clocks that are set."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cargobike.core.errors import StoreError
from cargobike.core.registering.triggers import Seen, Trigger
from cargobike.pipelines.scheduling.keeping.book import Book
from cargobike.pipelines.scheduling.keeping.lease import Lease
from cargobike.pipelines.scheduling.plan import Plan, Target
from cargobike.pipelines.scheduling.policy.events import Asked
from cargobike.pipelines.scheduling.policy.policy import begin
from cargobike.pipelines.scheduling.policy.state import Firing, Outcome, State, key_of
from cargobike.pipelines.scheduling.process.looking import Answer, Looks, answer
from cargobike.pipelines.scheduling.process.runs import RunSeen
from cargobike.pipelines.scheduling.process.scheduler import Scheduler
from cargobike.store.files.storage import Entry, Storage

TARGET = Target("/somewhere/retrain.py", "retrain")


class Killed(BaseException):
    """What a scheduler that is killed sees: nothing of it runs any more."""


class MemoryStorage(Storage):
    """Files in a dict; `before` is called before each change and after it, and may raise."""

    def __init__(self) -> None:
        self.url = "memory"
        self.files: dict[str, tuple[bytes, str]] = {}
        self.before: Callable[[str], None] = lambda words: None
        self._tokens = itertools.count()

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        file = self.files.get(path)
        return None if file is None else file[0]

    def write(self, path: str, data: bytes | Path) -> None:
        assert isinstance(data, bytes)
        self.before(f"write {path}")
        self.files[path] = (data, str(next(self._tokens)))
        self.before(f"written {path}")

    def create(self, path: str, data: bytes) -> bool:
        self.before(f"create {path}")
        if path in self.files:
            return False
        self.files[path] = (data, str(next(self._tokens)))
        self.before(f"created {path}")
        return True

    def list(self, folder: str = "", *, deep: bool = False) -> Iterator[Entry]:
        for path in [path for path in self.files if path.startswith(f"{folder}/")]:
            if deep or "/" not in path.removeprefix(f"{folder}/"):
                yield Entry(path, len(self.files[path][0]), self.files[path][1])

    def stat(self, path: str) -> Entry | None:
        file = self.files.get(path)
        return None if file is None else Entry(path, len(file[0]), file[1])

    def delete(self, *paths: str) -> None:
        for path in paths:
            self.before(f"delete {path}")
            self.files.pop(path, None)

    def arrow(self) -> tuple[Any, str]:
        raise NotImplementedError


class NotedRuns:
    """Runs that are shared by all schedulers of a world, as real ones are: an id is begun once, and lives on."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self.begun: list[tuple[str, State, Firing]] = []
        self.ends: dict[str, tuple[Outcome, str]] = {}
        self.cancelled: list[str] = []
        self.most_at_once = 0
        self.refuse: str = ""

    @property
    def ids(self) -> list[str]:
        return [run for run, _, _ in self.begun]

    @property
    def working(self) -> list[str]:
        return [run for run in self.ids if run not in self.ends]

    def look(self, state: State, firing: Firing) -> RunSeen:
        if firing.run in self.ends:
            return RunSeen("over", *self.ends[firing.run])
        return RunSeen("running" if firing.run in self.ids else "absent")

    def start(self, state: State, firing: Firing) -> None:
        self._storage.before(f"start {firing.run}")
        if self.refuse:
            raise StoreError(self.refuse)
        if firing.run not in self.ids:  # its folder is created only if absent
            self.begun.append((firing.run, state, firing))
        self.most_at_once = max(self.most_at_once, len(self.working))
        self._storage.before(f"started {firing.run}")

    def cancel(self, firing: Firing) -> None:
        self._storage.before(f"cancel {firing.run}")
        self.cancelled.append(firing.run)
        if firing.run in self.working:
            self.end(firing.run, "cancelled")

    def end(self, run: str, outcome: Outcome = "completed") -> None:
        self.ends[run] = (outcome, "")


class SetClock:
    """A clock that is set by hand; the stopwatch of all is the world's."""

    def __init__(self, world: World, ahead_s: float = 0.0) -> None:
        self._world = world
        self.ahead_s = ahead_s

    def now(self) -> float:
        return self._world.at + self.ahead_s

    def stopwatch(self) -> float:
        return self._world.passed


class LooksAtOnce:
    """Looks at triggers in the same turn."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._answers: list[Answer] = []

    def ask(self, schedule: str, trigger: Trigger, since: str) -> None:
        self._answers.append(answer(self._world.look, schedule, trigger, since))

    def answers(self) -> list[Answer]:
        answers, self._answers = self._answers, []
        return answers


class World:
    """A project, its schedulers and the time."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.passed = 0.0
        self.storage = MemoryStorage()
        self.book = Book(self.storage)
        self.runs = NotedRuns(self.storage)
        self.events: dict[str, list[str]] = {}
        self.failing: set[str] = set()
        self.said: list[tuple[str, str]] = []
        self._names = itertools.count(1)

    def look(self, trigger: Trigger, mark: str) -> Seen:
        if trigger.subject in self.failing:
            raise StoreError(f"{trigger.subject} does not answer")
        happened = self.events.get(trigger.subject, [])
        new = happened[int(mark) :] if mark else []
        return Seen(str(len(happened)), {"names": new} if new else None)

    def schedule(self, name: str = "retrain", **asked: Any) -> State:
        plan = Plan(target=TARGET, start=self.at, **asked)
        marks = {key_of(trigger): self.look(trigger, "").mark for trigger in plan.when}
        state = begin(name, Asked(self.at, plan, marks))
        return self.book.change(name, lambda before: before or state)

    def state(self, name: str = "retrain") -> State:
        return self.book.schedule(name)

    def scheduler(self, ahead_s: float = 0.0, **asked: Any) -> Scheduler:
        process = f"{next(self._names)} elsewhere 1 2"
        return Scheduler(
            book=self.book,
            lease=Lease(self.storage, process),
            runs=self.runs,
            looker=LooksAtOnce(self),
            clock=SetClock(self, ahead_s),
            say=lambda name, words: self.said.append((name, words)),
            looks=Looks(5.0),
            **asked,
        )

    def pass_time(self, seconds: float, *schedulers: Scheduler, step_s: float = 1.0) -> None:
        """Let time pass, with a turn of each scheduler after each step."""
        end = self.passed + seconds
        while self.passed < end:
            step = min(step_s, end - self.passed)
            self.at, self.passed = self.at + step, self.passed + step
            for scheduler in schedulers:
                scheduler.turn()
