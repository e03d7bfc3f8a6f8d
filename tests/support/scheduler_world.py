"""A world around a scheduler: workers, train functions and an optimizer that do anything they are able to do.

Everything a real world could see of a scheduler is checked after each event; nothing here looks into it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from cargobike.core import facts
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import IDLE, Decision, Suggestion, Trial, TrialState
from cargobike.core.running.ending import Ending, EndKind
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.testing.journals import first_fact

HEADER = first_fact(at=0.0, id="20270115-080000-test", name="test")
KILLED = Ending(EndKind.KILLED, "was killed")
MOST_STEPS = 8


@dataclass(slots=True)
class Job:
    """What a worker is doing."""

    trial: int
    attempt: int
    rank: int
    step: int = 0
    waits_at: int | None = None
    told_to: Decision = Decision.CONTINUE
    halted: bool = False


@dataclass(slots=True)
class Worker:
    """A worker as the engine sees it."""

    name: str
    joined: bool = False
    job: Job | None = None
    line: list[Job] = field(default_factory=list)
    is_recalled: bool = False
    history: list[Job] = field(default_factory=list)


class World:
    """Carries out commands, offers what may happen next, and complains about everything that must not be."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.at = 0.0
        self.facts: list[facts.AnyFact] = [HEADER]
        self.scheduler = Scheduler(plan, ExperimentRecord(HEADER))
        self.workers: dict[str, Worker] = {}
        self.gone: dict[str, Worker] = {}
        self.released: set[str] = set()
        self.questions: deque[ev.Ask | ev.Judge] = deque()
        self.shown: Counter[tuple[int, bool]] = Counter()
        self.last_words: list[ev.Event] = []
        self.last_answer: Any = None
        self.finish: ev.Finish | None = None
        self.final: dict[int, Trial] = {}
        self._do(self.scheduler.begin(self.at))

    @property
    def trials(self) -> dict[int, Trial]:
        return self.scheduler.record.trials

    # -- carrying out --------------------------------------------------------------------------------------------

    def happen(self, event: ev.Event) -> None:
        """Let something happen, carry out what follows, and check that all is well."""
        was_finished = self.finish is not None
        commands = self.scheduler.handle(event)
        assert not (was_finished and commands), f"after the end: {commands}"
        self._do(commands)

    def _do(self, commands: list[ev.Command]) -> None:
        for number, command in enumerate(commands):
            if isinstance(command, ev.Finish):
                assert number == len(commands) - 1
            _ACTIONS[type(command)](self, command)
        self._check()

    def _record(self, command: ev.Record) -> None:
        fact: Any = command.fact
        assert fact.at >= self.facts[-1].at, "time runs backwards"
        self.facts.append(fact)

    def _ask(self, command: ev.Ask) -> None:
        assert not any(isinstance(question, ev.Ask) for question in self.questions)
        for number in command.tell:
            trial = self.trials[number]
            assert trial.state.is_final or trial.state is TrialState.PAUSED
            # A pause is shown as often as it happens; an end once.
            self.shown[number, trial.state.is_final] += 1
            assert self.shown[number, True] <= 1
            pauses = sum(isinstance(fact, facts.TrialPaused) and fact.trial == number for fact in self.facts)
            assert self.shown[number, False] <= pauses
        assert command.after is None or command.after in self.trials
        self.questions.append(command)

    def _judge(self, command: ev.Judge) -> None:
        assert command not in self.questions
        assert self._running(command.trial, command.attempt)
        self.questions.append(command)

    def _run(self, command: ev.Run) -> None:
        if command.ahead:
            self._run_later(command)
            return
        plan, size = self.plan, len(set(command.workers)) - self.plan.servers
        assert (plan.least_gang or plan.gang) <= size <= plan.gang, "a gang starts all or none"
        assert [name[0] for name in command.workers] == ["w"] * size + ["s"] * plan.servers
        assert not any(worker.job and worker.job.trial == command.trial for worker in self.workers.values())
        trial = self.trials[command.trial]
        assert trial.state is TrialState.RUNNING
        assert trial.attempts == command.attempt
        for rank, name in enumerate(command.workers):
            worker = self.workers[name]
            assert worker.joined
            assert worker.job is None
            worker.job = Job(command.trial, command.attempt, rank)

    def _run_later(self, command: ev.Run) -> None:
        (name,) = command.workers
        worker, trial = self.workers[name], self.trials[command.trial]
        assert self.plan.ahead > len(worker.line), "more than it can hold"
        assert worker.job is not None, "a free worker should begin at once"
        assert not worker.is_recalled
        assert not self._is_held(command.trial)
        assert (trial.state, trial.attempts, command.attempt) == (TrialState.PENDING, 0, 1)
        worker.line.append(Job(command.trial, command.attempt, 0))

    def _is_held(self, trial: int) -> bool:
        return any(job.trial == trial for worker in self.workers.values() for job in worker.line)

    def _recall(self, command: ev.Recall) -> None:
        self.workers[command.worker].is_recalled = True

    def _answer(self, command: ev.Answer) -> None:
        job = self.workers[command.worker].job
        assert job is not None
        assert (job.trial, job.attempt, job.waits_at) == (command.trial, command.attempt, command.step)
        assert job.told_to is Decision.CONTINUE or command.decision is not Decision.CONTINUE
        job.waits_at = None
        job.told_to = command.decision

    def _confirm(self, command: ev.Confirm) -> None:
        assert self._running(command.trial, command.attempt)
        assert command.number <= self.trials[command.trial].reports

    def _stop_attempt(self, command: ev.StopAttempt) -> None:
        job = self.workers[command.worker].job
        assert job is not None
        assert (job.trial, job.attempt) == (command.trial, command.attempt)
        job.halted = True

    def _start_worker(self, command: ev.StartWorker) -> None:
        assert command.worker not in self.workers
        assert command.worker not in self.gone
        assert command.worker not in self.released
        self.workers[command.worker] = Worker(command.worker)
        assert len(self.workers) <= self.plan.workers + self.plan.servers * self.plan.most_gangs

    def _release_worker(self, command: ev.ReleaseWorker) -> None:
        worker = self.workers.pop(command.worker)
        assert worker.job is None
        assert not worker.line
        self.released.add(command.worker)

    def _finish(self, command: ev.Finish) -> None:
        assert self.finish is None
        assert self.scheduler.finished
        self.finish = command

    # -- checking ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        record = self.scheduler.record
        if self.plan.num_trials is not None:
            assert len(record.trials) <= self.plan.num_trials
        for number, trial in record.trials.items():
            known = self.final.get(number)
            assert known is None or known == trial, "a finished result has changed"
            if known is None and trial.state.is_final:
                self.final[number] = copy(trial)
            workers = [worker for worker in self.workers.values() if worker.job and worker.job.trial == number]
            may_run = any(worker.is_recalled for worker in workers) and trial.state is TrialState.PENDING
            assert bool(workers) == (trial.state is TrialState.RUNNING) or may_run, "it is lost, or runs in secret"
        waiting = [
            trial
            for trial in record.trials.values()
            if trial.state is TrialState.PENDING and not self._is_held(trial.number)
        ]
        free = [worker for worker in self.workers.values() if worker.joined and worker.job is None]
        if waiting and not self.scheduler.is_ending and self.finish is None:
            servers = [worker for worker in free if worker.name.startswith("s")]
            is_short = len(free) - len(servers) < self.plan.gang or len(servers) < self.plan.servers
            assert is_short, "a gang idles while a trial is ready"
        if self.finish is not None:
            self._check_end(record)

    def _check_end(self, record: ExperimentRecord) -> None:
        assert self.finish is not None
        assert record.state == self.finish.state
        assert not self.workers
        for trial in record.trials.values():
            never_started = trial.state is TrialState.PENDING and trial.attempts == 0
            can_go_on = trial.state is TrialState.PAUSED and self.finish.state != "completed"
            assert trial.state.is_final or (self.scheduler.is_ending and (never_started or can_go_on))
            assert not trial.is_interrupted or self.finish.state != "completed"
        assert fold(self.facts) == record, "the facts alone tell another story"
        wanted_more = self.plan.num_trials is None or len(record.trials) < self.plan.num_trials
        if self.last_answer == IDLE and wanted_more and not self.scheduler.is_ending:
            shown = {number for number, _ in self.shown}
            assert shown == set(record.trials), "a search ends before the optimizer has seen everything"

    def _running(self, trial: int, attempt: int) -> bool:
        jobs = [worker.job for worker in self.workers.values() if worker.job]
        return any((job.trial, job.attempt) == (trial, attempt) for job in jobs)

    # -- what may happen -----------------------------------------------------------------------------------------

    def choices(self) -> list[Callable[[int], ev.Event]]:
        """Return everything that may happen next; each takes a number that decides about its details."""
        found: list[Callable[[int], ev.Event]] = []
        if self.questions:
            found += [self.answer] * 3
        for worker in self.workers.values():
            found += self._choices_of(worker)
        found += [self._tick, self._something_stale, self._something_stale]
        if len(self.facts) > 12:
            found.append(self._stop_request)
        return found

    def _choices_of(self, worker: Worker) -> list[Callable[[int], ev.Event]]:
        def arrive(_: int) -> ev.Event:
            return self.arrive(worker)

        def die(_: int) -> ev.Event:
            return self.die(worker)

        def end(choice: int) -> ev.Event:
            job = worker.job
            assert job is not None
            outcomes: list[ev.Outcome] = ["completed", "completed", "failed", "lost", "stopped", "paused"]
            if job.told_to is not Decision.CONTINUE or job.halted:
                outcomes += ["paused" if job.told_to is Decision.PAUSE else "stopped"] * 6
            if len(self.trials[job.trial].params) and choice % 11 == 10 and self.plan.gang > 1:
                return self.end(worker, "lost", choice, is_symptom=True)
            return self.end(worker, outcomes[choice % len(outcomes)], choice)

        def stand_still(choice: int) -> ev.Event:
            job = worker.job
            assert job is not None
            return ev.RankQuiet(
                at=self.at, worker=worker.name, trial=job.trial, attempt=job.attempt, idle_s=float(choice % 8)
            )

        def report(_: int) -> ev.Event:
            return self.report(worker)

        def save(_: int) -> ev.Event:
            job = worker.job
            assert job is not None
            return ev.CheckpointWritten(
                at=self.at, worker=worker.name, trial=job.trial, attempt=job.attempt, step=job.step, path="x"
            )

        if not worker.joined:
            return [arrive, arrive, arrive, die]
        if worker.job is None:
            return [die]
        if worker.is_recalled or (worker.line and worker.job.step):
            return [lambda _: self.give_back(worker), end, end, report, die]
        if worker.job.waits_at is not None:
            return [die, end] if worker.job.halted else [die]
        more: list[Callable[[int], ev.Event]] = [report, report, save] if worker.job.step < MOST_STEPS else []
        if self.plan.stall_timeout_s is not None:
            more.append(stand_still)
        return [end, end, end, die, *more]

    def arrive(self, worker: Worker) -> ev.Event:
        worker.joined = True
        return ev.WorkerArrived(at=self.at, worker=worker.name, holds=True)

    def give_back(self, worker: Worker) -> ev.Event:
        """Return what it has not begun."""
        trials = tuple(job.trial for job in worker.line)
        worker.line.clear()
        worker.is_recalled = False
        return ev.TrialsReturned(at=self.at, worker=worker.name, trials=trials)

    def die(self, worker: Worker, ending: Ending = KILLED) -> ev.Event:
        del self.workers[worker.name]
        self.gone[worker.name] = worker
        if worker.job is not None:
            worker.history.append(worker.job)
        return ev.WorkerGone(at=self.at, worker=worker.name, ending=ending)

    def end(self, worker: Worker, outcome: ev.Outcome, choice: int = 0, *, is_symptom: bool = False) -> ev.Event:
        job = worker.job
        assert job is not None
        worker.job = worker.line.pop(0) if worker.line else None
        worker.history.append(job)
        event = ev.AttemptEnded(
            at=self.at,
            worker=worker.name,
            trial=job.trial,
            attempt=job.attempt,
            outcome=outcome,
            value=[1.0, math.inf, -1.0, 0.5][choice % 4] if outcome == "completed" else None,
            metrics={"loss": 1.0} if outcome == "completed" else {},
            error="ValueError" if outcome == "failed" else None,
            alike=["a", "a", "b"][choice % 3],
            is_symptom=is_symptom,
        )
        self.last_words.append(event)
        return event

    def report(self, worker: Worker) -> ev.Event:
        job = worker.job
        assert job is not None
        job.step += 1
        milestones = self.scheduler.milestones(job.trial)
        waits = milestones == "every" or job.step in milestones
        job.waits_at = job.step if waits else None
        event = ev.PointsReported(
            at=self.at,
            worker=worker.name,
            trial=job.trial,
            attempt=job.attempt,
            step=job.step,
            metrics={"accuracy": 0.1 * job.step},
            waits=waits,
        )
        if not waits:
            self.last_words.append(event)
        return event

    def answer(self, choice: int) -> ev.Event:
        """Answer the oldest question, sensibly or not."""
        question = self.questions.popleft()
        if choice % 40 == 39:
            return ev.StopRequested(at=self.at, reason="the optimizer failed:\nno", state="failed")
        if isinstance(question, ev.Judge):
            decisions = [Decision.CONTINUE, Decision.CONTINUE, Decision.STOP, Decision.PAUSE, Decision.PAUSE]
            return self.decide(question, decisions[choice % len(decisions)])
        paused = [trial.number for trial in self.trials.values() if trial.state is TrialState.PAUSED]
        suggestions: list[Any] = [
            Suggestion(params={"x": choice}),
            Suggestion(params={"x": choice}),
            Suggestion(params={"x": choice}, milestones=(1, 3, 4)),
            Suggestion(params={"x": choice}, milestones=(2,), copy_checkpoint_of=0 if self.trials else None),
            Suggestion(params={"x": choice}, milestones="every"),
            IDLE,
            *(Suggestion(resume=number, milestones=(choice % 6,)) for number in paused * 3),
        ]
        if choice % 7 == 6:
            suggestions = [None, Suggestion(resume=choice % 5 - 1)]
        return self.suggest(question, suggestions[choice // 7 % len(suggestions)])

    def suggest(self, question: ev.Ask, suggestion: Any) -> ev.Event:
        self.last_answer = suggestion
        told = sum(self.shown.values())
        return ev.SuggestionMade(at=self.at, suggestion=suggestion, told=told, after=question.after)

    def decide(self, question: ev.Judge, decision: Decision) -> ev.Event:
        event = ev.DecisionMade(
            at=self.at, trial=question.trial, attempt=question.attempt, step=question.step, decision=decision
        )
        self.last_words.append(event)
        return event

    def _tick(self, choice: int) -> ev.Event:
        self.at += choice % 5
        return ev.Tick(at=self.at)

    def _something_stale(self, choice: int) -> ev.Event:
        """Repeat or delay what was said before."""
        stale: list[ev.Event] = [*self.last_words[-8:]]
        for worker in [*self.gone.values(), *self.workers.values()]:
            if worker.name in self.gone or worker.joined:
                stale.append(ev.WorkerArrived(at=self.at, worker=worker.name))
        stale += [ev.WorkerGone(at=self.at, worker=name, ending=KILLED) for name in self.gone]
        stale += [ev.WorkerGone(at=self.at, worker=name, ending=KILLED) for name in self.released]
        stale.append(ev.WorkerArrived(at=self.at, worker="stranger"))
        stale.append(ev.TrialsReturned(at=self.at, worker="stranger", trials=(0, 1, 99)))
        stale += self._forged(choice)
        event = stale[choice % len(stale)]
        if isinstance(event, ev.PointsReported) and self._running(event.trial, event.attempt):
            return ev.Tick(at=self.at)  # the link delivers once; only the dead repeat themselves
        return event

    def _forged(self, choice: int) -> list[ev.Event]:
        """Return what workers say about the trials of others, and about trials that do not exist."""
        jobs = [(worker.job.trial, worker.job.attempt) for worker in self.workers.values() if worker.job]
        forged: list[ev.Event] = []
        for trial, attempt in [*jobs, (0, 1), (99, 1), (-1, 0)]:
            for worker in [*self.workers.values(), Worker("stranger")]:
                if worker.job is None or (worker.job.trial, worker.job.attempt) != (trial, attempt):
                    which: dict[str, Any] = {"at": self.at, "worker": worker.name, "trial": trial, "attempt": attempt}
                    forged += [
                        ev.AttemptEnded(**which, outcome="completed", value=1.0, metrics={}, error=None),
                        ev.PointsReported(**which, step=choice % 9, metrics={"loss": 1.0}, waits=choice % 2 == 0),
                        ev.CheckpointWritten(**which, step=choice % 9, path="x"),
                        ev.RankQuiet(**which, idle_s=100.0),
                    ]
        return forged

    def _stop_request(self, choice: int) -> ev.Event:
        if choice % 16:
            return ev.Tick(at=self.at)
        return ev.StopRequested(at=self.at, reason="interrupted by the user")

    # -- to the end ----------------------------------------------------------------------------------------------

    def settle(self, suggestion: Any = None) -> None:
        """Let everything go its way, without accidents, until it is over."""
        for _ in range(2000):
            if self.finish is not None:
                return
            self.happen(self._next_of_a_quiet_world(suggestion))
        raise AssertionError(f"it never ends: {len(self.trials)} trials, {self.workers}, {self.questions}")

    def _next_of_a_quiet_world(self, suggestion: Any) -> ev.Event:
        if self.questions:
            question = self.questions.popleft()
            if isinstance(question, ev.Judge):
                return self.decide(question, Decision.CONTINUE)
            return self.suggest(question, suggestion)
        for worker in self.workers.values():
            if not worker.joined:
                return self.arrive(worker)
        for worker in self.workers.values():
            if worker.is_recalled:
                return self.give_back(worker)
            job = worker.job
            if job is not None and (job.waits_at is None or job.halted):
                way = {Decision.STOP: "stopped", Decision.PAUSE: "paused", Decision.CONTINUE: "completed"}
                return self.end(worker, "stopped" if job.halted else way[job.told_to])  # type: ignore[arg-type]
        due = self.scheduler.next_deadline
        assert due is not None, f"everybody waits for somebody: {self.workers}"
        self.at = max(self.at, due)
        return ev.Tick(at=self.at)


_ACTIONS: dict[type[ev.Command], Callable[[World, Any], None]] = {
    ev.Record: World._record,
    ev.Ask: World._ask,
    ev.Judge: World._judge,
    ev.Run: World._run,
    ev.Recall: World._recall,
    ev.Answer: World._answer,
    ev.Confirm: World._confirm,
    ev.StopAttempt: World._stop_attempt,
    ev.StartWorker: World._start_worker,
    ev.ReleaseWorker: World._release_worker,
    ev.Finish: World._finish,
}


class Story(World):
    """A world in which a test says what happens."""

    def __init__(self, **plan: Any) -> None:
        super().__init__(Plan(**plan))

    def join_all(self) -> None:
        for worker in list(self.workers.values()):
            if not worker.joined:
                self.happen(self.arrive(worker))

    def suggest_next(self, suggestion: Any = None) -> None:
        question = self.questions.popleft()
        assert isinstance(question, ev.Ask)
        self.happen(self.suggest(question, Suggestion(params={"x": 1}) if suggestion is None else suggestion))

    def decide_next(self, decision: Decision) -> ev.Judge:
        question = self.questions.popleft()
        assert isinstance(question, ev.Judge)
        self.happen(self.decide(question, decision))
        return question

    def report_from(self, *names: str) -> None:
        for name in names:
            self.happen(self.report(self.workers[name]))

    def end_on(self, name: str, outcome: ev.Outcome = "completed") -> None:
        self.happen(self.end(self.workers[name], outcome))

    def lose(self, name: str, ending: Ending = KILLED) -> None:
        self.happen(self.die(self.workers[name], ending))

    def job(self, name: str) -> tuple[int, int] | None:
        job = self.workers[name].job
        return None if job is None else (job.trial, job.attempt)

    @property
    def states(self) -> list[str]:
        return [trial.state.value for trial in self.trials.values()]
