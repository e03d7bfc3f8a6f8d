"""Decides which ranks make up the next world, and when: events in, commands out; no clock, no socket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from cargobike.core.values.words import count
from cargobike.training.regrouping.messages import Broken, Changed, Dismissed, ToRank, World

BREAKS_IN_A_ROW: Final = 3
"""How many worlds may break without progress before the job is given up."""
SYMPTOM_S: Final = 1.0
"""How long a rank's failure may turn out to follow from the loss of another one."""


class State(Enum):
    """What a worker is doing."""

    STARTING = auto()
    READY = auto()
    TRAINING = auto()
    DONE = auto()


@dataclass(slots=True)
class Worker:
    """One worker, as the roster knows it."""

    name: str
    state: State = State.STARTING
    host: str = ""
    place: str = ""
    rank: int | None = None
    generation: int = -1
    is_dismissed: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """Start another worker."""


@dataclass(frozen=True, slots=True)
class Say:
    """Tell a worker something."""

    worker: str
    body: ToRank


@dataclass(frozen=True, slots=True)
class End:
    """End a worker that does not answer."""

    worker: str


@dataclass(frozen=True, slots=True)
class Finish:
    """All have returned."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job has failed."""

    why: str
    rank: int | None = None
    host: str = ""
    code: int = 1


Command = Start | Say | End | Finish | GiveUp


@dataclass(frozen=True, slots=True)
class Terms:
    """What was asked for.

    Attributes:
        start: How many ranks the first world has.
        least: How many are enough to go on.
        most: How many there are at most.
        is_elastic: Whether ranks may be lost and come at all.
        start_s: How long the first world may take to form; with fewer than `start` it forms after that time.
        wait_s: How long later ones may take.
        reset_limit: How many worlds may follow the first one; `None` for any number.
    """

    start: int
    least: int
    most: int
    is_elastic: bool = True
    start_s: float = 120.0
    wait_s: float = 600.0
    reset_limit: int | None = None


@dataclass(slots=True)
class _Failure:
    worker: Worker
    error: str
    code: int
    at: float


@dataclass(slots=True)
class Roster:
    """Who is there. Call what happened, then `decide`."""

    terms: Terms
    wanted: int = 0
    generation: int = -1
    workers: dict[str, Worker] = field(default_factory=dict)
    _waiting_since: float | None = None
    _broken_since: float | None = None
    _breaks: int = 0
    _losses: list[str] = field(default_factory=list)
    _said_changed: bool = False
    _failure: _Failure | None = None
    _given_up: GiveUp | None = None
    _unsaid: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wanted = self.wanted or self.terms.start

    # -- what happened ---------------------------------------------------------------------------------------------

    def started(self, name: str) -> None:
        """Count a worker that was just started."""
        self.workers[name] = Worker(name)

    def came(self, name: str, host: str) -> None:
        """Note where a worker is."""
        self.workers[name].host = host

    def ready(self, name: str, place: str, now: float) -> None:
        """Note that a rank wants to meet; one that is in a world leaves it by that."""
        worker = self.workers[name]
        if worker.state is State.TRAINING and self._broken_since is None and not self._said_changed:
            self._broke(f"rank {worker.rank} left it to meet again", now, worker)
        worker.state, worker.place = State.READY, place

    def progressed(self) -> None:
        """Note that the present world got further."""
        if self._broken_since is None:
            self._breaks = 0

    def returned(self, name: str) -> None:
        """Note that a worker is done."""
        worker = self.workers[name]
        if worker.is_dismissed:
            del self.workers[name]
            return
        worker.state = State.DONE

    def failed(self, name: str, error: str, code: int, now: float) -> None:
        """Note that the function of a worker raised an error, or its program ended with one."""
        worker = self.workers[name]
        if worker.is_dismissed:
            del self.workers[name]
        elif self._broken_since is not None and worker.generation == self.generation and self.terms.is_elastic:
            self.lost(name, f"failed after another rank was lost:\n{error}", now)
        elif self._failure is None:
            self._failure = _Failure(worker, error, code, now)

    def lost(self, name: str, why: str, now: float, code: int = 1) -> None:
        """Note that a worker is gone, without a fault of its function."""
        worker = self.workers.pop(name, None)
        if worker is None or worker.state is State.DONE or worker.is_dismissed:
            return
        who = f"rank {worker.rank} on {worker.host}" if worker.rank is not None else f"a rank on {worker.host or '?'}"
        self._losses.append(f"{who} {why}")
        if not self.terms.is_elastic:
            self._give_up(f"{who}: its process {why}", worker, code)
            return
        failure, self._failure = self._failure, None
        self._broke(f"{who} {why}", now, worker)
        if failure is not None and failure.worker.name in self.workers:  # it failed because this one was missing
            self.lost(failure.worker.name, f"failed after another rank was lost:\n{failure.error}", now)

    def resize(self, wanted: int) -> None:
        """Change how many ranks there should be."""
        self.wanted = max(0, min(wanted, self.terms.most))

    # -- what follows ----------------------------------------------------------------------------------------------

    def decide(self, now: float) -> list[Command]:
        """Return what is to be done now."""
        commands, self._unsaid = self._unsaid, []
        if self._failure is not None and now >= self._failure.at + SYMPTOM_S:
            failure = self._failure
            self._give_up(self._name(failure.worker, failure.error), failure.worker, failure.code)
        if self._of(State.DONE):
            commands += self._turn_away()
            if len(self._of(*State)) == len(self._of(State.DONE)):
                return [*commands, Finish()]
        if self._given_up is None:
            commands += self._staff()
            commands += self._form(now)
            commands += self._announce()
            self._check_deadlines(now, commands)
        return commands if self._given_up is None else [self._given_up]

    def _of(self, *states: State) -> list[Worker]:
        return [each for each in self.workers.values() if each.state in states and not each.is_dismissed]

    def _staff(self) -> Iterable[Command]:
        """Start what is missing, dismiss what is too much."""
        alive = self._of(State.STARTING, State.READY, State.TRAINING)
        is_first = self.generation < 0
        if self._of(State.DONE) or (not self.terms.is_elastic and not is_first):
            return
        if len(alive) < self.wanted:
            if is_first and not self.terms.is_elastic and self._losses:
                return
            yield from [Start()] * (self.wanted - len(alive))
        for worker in alive[self.wanted :]:
            if worker.state is not State.TRAINING:
                worker.is_dismissed = True
                yield Say(worker.name, Dismissed())

    def _turn_away(self) -> Iterable[Command]:
        """Dismiss those that have come too late: others are done already."""
        for worker in self._of(State.STARTING, State.READY):
            if worker.rank is None:
                worker.is_dismissed = True
                yield Say(worker.name, Dismissed())

    def _form(self, now: float) -> Iterable[Command]:
        ready = self._of(State.READY)
        if self._of(State.TRAINING):
            return
        if self._waiting_since is None:
            self._waiting_since = now
        if not ready or len(ready) < self.terms.least:
            return
        is_first = self.generation < 0
        if is_first and len(ready) < self.terms.start and now < self._waiting_since + self.terms.start_s:
            return
        if self.terms.reset_limit is not None and self.generation >= self.terms.reset_limit:
            self._give_up(f"its ranks have changed {count(self.generation + 1, 'time')}, more than reset_limit allows")
            return
        # Ranks that have trained come first: rank 0 gives its state to those that are new.
        members = sorted(ready, key=lambda each: (each.rank is None, each.rank or 0))[: self.wanted or None]
        members = _side_by_side(members)
        self.generation += 1
        hosts = tuple(each.host for each in members)
        for rank, worker in enumerate(members):
            worker.state, worker.rank, worker.generation = State.TRAINING, rank, self.generation
            yield Say(worker.name, World(self.generation, rank, hosts, members[0].place))
        self._waiting_since = self._broken_since = None
        self._said_changed = False

    def _announce(self) -> Iterable[Command]:
        """Tell a world that others are ready to join it, or that some of it have to leave."""
        training = self._of(State.TRAINING)
        if not training or self._said_changed or self._broken_since is not None or self._of(State.DONE):
            return
        comes, goes = self._of(State.READY), len(training) > self.wanted >= self.terms.least
        if comes or goes:
            self._said_changed = True
            for worker in training:
                yield Say(worker.name, Changed(self.generation, not comes))

    def _check_deadlines(self, now: float, commands: list[Command]) -> None:
        terms = self.terms
        patience_s = terms.start_s if self.generation < 0 else terms.wait_s
        ready, training = self._of(State.READY), self._of(State.TRAINING)
        if self._waiting_since is not None and not training and len(ready) < terms.least:
            can_come = self._of(State.STARTING) or any(isinstance(each, Start) for each in commands)
            if not can_come and self.workers and not self._of(State.DONE) and self.wanted < terms.least:
                patience_s = min(patience_s, terms.wait_s)
            if now > self._waiting_since + patience_s:
                there = f"{len(ready)} of at least {count(terms.least, 'rank')} were there"
                self._give_up(f"{there} within {patience_s:g} s{self._lost_so_far()}")
            elif self._of(State.DONE) and not self._of(State.STARTING):
                self._give_up(f"ranks are missing that others have not waited for{self._lost_so_far()}")
        if self._broken_since is not None and training and now > self._broken_since + terms.wait_s:
            for worker in training:
                commands.append(End(worker.name))

    def _broke(self, why: str, now: float, by: Worker) -> None:
        if by.state is not State.TRAINING or self._broken_since is not None:
            return
        self._broken_since = now
        self._breaks += 1
        if self._breaks >= BREAKS_IN_A_ROW:
            self._give_up(f"{self._breaks} times in a row without progress, a rank was lost{self._lost_so_far()}", by)
        for worker in self._of(State.TRAINING):
            if worker is not by:
                self._unsaid.append(Say(worker.name, Broken(self.generation, why)))

    def _give_up(self, why: str, worker: Worker | None = None, code: int = 1) -> None:
        if self._given_up is None:
            self._given_up = GiveUp(why, code=code) if worker is None else GiveUp(why, worker.rank, worker.host, code)

    def _name(self, worker: Worker, error: str) -> str:
        who = f"rank {worker.rank}" if worker.rank is not None else "a rank that had not met the others yet"
        return f"{who} on {worker.host}: {error}"

    def _lost_so_far(self) -> str:
        return "".join(f"\n  - {loss}" for loss in self._losses[-5:])


def _side_by_side(members: list[Worker]) -> list[Worker]:
    """Return the members with those of one host side by side, and the first one first."""
    hosts = list(dict.fromkeys(each.host for each in members))
    return sorted(members, key=lambda each: hosts.index(each.host))
