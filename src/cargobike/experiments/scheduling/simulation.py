"""An experiment in virtual time: the scheduler and the optimizer of real ones, on workers that exist only on paper.

It answers questions about schedules and algorithms in seconds: what would ASHA save on this curve, what does a worker
five times slower than the others cost, what does the driver itself need for ten thousand workers.
"""

from __future__ import annotations

import gc
import inspect
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import msgspec

from cargobike.core.asked import Aim, Asked, Gang, Named, Placement, Search
from cargobike.core.errors import EngineError, InvalidInputError, nearest
from cargobike.core.facts import AnyFact, ExperimentStarted
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction, ExperimentState, Trial
from cargobike.core.values.kinds import read_count
from cargobike.core.values.numbers import describe
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.engines.engine import WorkerSpec
from cargobike.engines.simulated import world
from cargobike.engines.simulated.engine import SimulatedEngine
from cargobike.engines.simulated.world import Cluster, SimulatedFunction, SimulatedRun, Usage
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import resolve_optimizer
from cargobike.search.optimizers.repeated import Repeated
from cargobike.search.rules.stop_rule import StopRule
from cargobike.search.spaces.space import Searchspace

__all__ = ["Cluster", "Scheduling", "SimulatedRun", "SimulationResult", "simulate"]


class Scheduling(TypedDict, total=False):
    """Further instructions for the scheduler; see `Plan`."""

    gang: int
    ask_ahead: int
    deterministic: bool
    max_attempts: int
    max_failures: int | None
    fail_fast: int
    trial_timeout_s: Seconds | None
    timeout_s: Seconds | None
    max_worker_losses: int


class SimulationResult(msgspec.Struct, kw_only=True):
    """What became of a simulated experiment.

    Attributes:
        record: Trials, workers and attempts, as the journal of a real experiment would have them.
        facts: That journal, if `keep_facts` was asked for.
        makespan_s: Virtual seconds from the start to the end.
        usage: How the workers spent their time, and how many steps they ran.
        events: How many events the scheduler handled.
        driver_cpu_s: Real seconds of CPU that the scheduler and the optimizer took, collections of garbage left out.
        collecting_cpu_s: What these took. They walk over what is simulated as well, whoever sets them off.
        cpu_s: Real seconds of CPU of the whole simulation.
    """

    record: ExperimentRecord
    facts: list[AnyFact]
    makespan_s: float
    usage: Usage
    events: int
    driver_cpu_s: float
    collecting_cpu_s: float
    cpu_s: float

    @property
    def trials(self) -> list[Trial]:
        """All trials, in the order of suggestion."""
        return list(self.record.trials.values())

    @property
    def best(self) -> Trial | None:
        """The completed trial with the best value."""
        return self.record.best

    @property
    def state(self) -> ExperimentState:
        """How the experiment ended; `record.reason` says why."""
        return self.record.state

    @property
    def utilisation(self) -> float:
        """Share of the workers' time that was spent on trials while there was work for all."""
        return self.usage.utilisation

    @property
    def driver_us_per_event(self) -> float:
        """Microseconds of CPU that the scheduler and the optimizer took for an event."""
        return self.driver_cpu_s / self.events * 1e6


def simulate(
    function: SimulatedFunction,
    space: Searchspace | Mapping[str, Any],
    *,
    optimizer: str | AbstractOptimizer = "randomsearch",
    num_trials: int | None = None,
    repeats: int = 1,
    workers: int = 8,
    direction: Direction = "max",
    seed: int = 0,
    cluster: Cluster | None = None,
    early_stop: StopRule | Sequence[StopRule] = (),
    suggestion_s: Seconds = 0.0,
    keep_facts: bool = False,
    **scheduling: Unpack[Scheduling],
) -> SimulationResult:
    """Run an experiment in virtual time.

    Args:
        function: A model of the train function: takes parameters and a seed, returns a `SimulatedRun`.
        space: What to try.
        optimizer: A name or an object.
        num_trials: How many trials to run.
        repeats: How often each of them is run, with another seed each time.
        workers: How many workers to keep.
        direction: `"max"` or `"min"`.
        seed: Decides about suggestions.
        cluster: What the workers are like: their speeds, how long they take to start, how often they die.
        early_stop: Rules that end running trials early.
        suggestion_s: Virtual seconds that the optimizer thinks about each suggestion.
        keep_facts: Whether to keep the journal.
        **scheduling: Further instructions for the scheduler, such as `gang=2` or `deterministic=True`; see `Plan`.

    Example:
        >>> def train(params, seed):
        ...     return SimulatedRun(steps=[(60.0, {"accuracy": params["x"]})] * 3, value=params["x"])
        >>> result = simulate(train, {"x": ("DOUBLE", [0, 1])}, num_trials=100, workers=10)
        >>> len(result.trials), result.makespan_s
        (100, 1800.0)
    """
    if not callable(function):
        raise InvalidInputError(
            "simulate needs a model of a train function, called with parameters and a seed, which returns a "
            f"SimulatedRun; {describe(function)} was given."
        )
    if num_trials is not None:
        read_count("num_trials", num_trials, least=1)
    for name, least, number in (("repeats", 1, repeats), ("workers", 1, workers), ("seed", 0, seed)):
        read_count(name, number, least=least)
    place: object = cluster
    if not isinstance(place, Cluster | None):
        raise InvalidInputError(f"cluster must be a Cluster, such as Cluster((1, 2)); {describe(place)} was given.")
    thinking_s = read_seconds("suggestion_s", suggestion_s, may_be_zero=True) or 0.0
    chosen = resolve_optimizer(optimizer)
    where = space if isinstance(space, Searchspace) else Searchspace(space)
    rules = tuple(early_stop) if isinstance(early_stop, Sequence) else (early_stop,)
    plan = Plan(
        workers=workers,
        num_trials=num_trials,
        seed=seed,
        every_report_is_milestone=chosen.wants_every_report or bool(rules),
        **_with_seconds(scheduling),
    )
    asked = Asked(
        name="simulation",
        search=Search(
            space=where.describe(),
            optimizer=Named(chosen.name or type(chosen).__name__),
            num_trials=num_trials,
            seed=seed,
            deterministic=plan.deterministic,
            repeats=repeats,
        ),
        aim=Aim(direction=direction),
        placement=Placement(workers=workers, gang=Gang(size=plan.gang), engine=SimulatedEngine.name),
    )
    header = ExperimentStarted(at=0.0, id="simulation", asked=asked)
    if repeats > 1:
        chosen, rules = Repeated(chosen, repeats, rules), ()
    chosen.deterministic = plan.deterministic
    chosen.setup(where, num_trials=num_trials, direction=direction, seed=seed)
    chosen.initialize()
    record = ExperimentRecord(header)
    session = OptimizerSession(chosen, record.runs, allowed=where.names, stop_rules=rules, settings=record.trials)
    engine = SimulatedEngine(function, cluster)
    return _Simulation(Scheduler(plan, record), session, engine, thinking_s, keep_facts).run()


def _with_seconds(scheduling: Scheduling) -> dict[str, Any]:
    own = [name for name in inspect.signature(simulate).parameters if name != "scheduling"]
    known = [*own, *Scheduling.__annotations__]
    for name in scheduling:
        if name not in known:
            raise InvalidInputError(f"simulate takes no {name!r}.{nearest(name, known)} It takes {', '.join(known)}.")
    limits = {name: scheduling.get(name) for name in ("trial_timeout_s", "timeout_s") if name in scheduling}
    return {**scheduling, **{name: read_seconds(name, limit) for name, limit in limits.items()}}


class _Simulation:
    """Carries commands of the scheduler to the engine and the optimizer, and their events back."""

    def __init__(
        self,
        scheduler: Scheduler,
        session: OptimizerSession,
        engine: SimulatedEngine,
        suggestion_s: float,
        keep_facts: bool,
    ) -> None:
        self._scheduler = scheduler
        self._session = session
        self._engine = engine
        self._suggestion_s = suggestion_s
        self._facts: list[AnyFact] | None = [scheduler.record.header] if keep_facts else None
        self._now = 0.0
        self._thinks_until = 0.0
        self._answers: deque[ev.Event] = deque()
        self._savers: set[int] = set()
        self._events = 0
        self._driver_cpu_s = 0.0
        self._collecting_cpu_s = 0.0
        self._collecting_since = 0.0
        self._actions: dict[type[ev.Command], Callable[[Any], None]] = {
            ev.Ask: self._ask,
            ev.Judge: self._ask,
            ev.Run: self._run,
            ev.Answer: lambda c: engine.answer(c.worker, c.trial, c.attempt, c.decision),
            ev.StopAttempt: lambda c: engine.halt(c.worker, c.trial, c.attempt),
            ev.StartWorker: self._start_worker,
            ev.ReleaseWorker: lambda c: engine.release(c.worker),
            ev.Finish: lambda _: None,
        }

    def run(self) -> SimulationResult:
        """Simulate until the experiment is over."""
        started = time.process_time()
        gc.callbacks.append(self._time_collection)
        try:
            self._do(self._scheduler.begin(0.0))
            while not self._scheduler.finished:
                self._pass_time()
        finally:
            gc.callbacks.remove(self._time_collection)
        usage = self._engine.usage
        self._engine.shutdown()
        self._session.finish()
        return SimulationResult(
            record=self._scheduler.record,
            facts=self._facts or [],
            makespan_s=self._now,
            usage=usage,
            events=self._events,
            driver_cpu_s=self._driver_cpu_s,
            collecting_cpu_s=self._collecting_cpu_s,
            cpu_s=time.process_time() - started,
        )

    def _clock(self) -> float:
        """Return the time of this thread on a processor, without collections of garbage."""
        return time.thread_time() - self._collecting_cpu_s

    def _time_collection(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._collecting_cpu_s += time.thread_time() - self._collecting_since

    def _pass_time(self) -> None:
        """Handle the next thing that is due; at the same time the driver's own comes before the workers'."""
        engine, answers = self._engine, self._answers
        ticks_at = self._scheduler.next_deadline
        answers_at = answers[0].at if answers else None
        dues = [due for due in (ticks_at, answers_at, engine.next_at) if due is not None]
        if not dues:
            raise EngineError("the simulation stands still: nothing will happen any more, but it is not over")
        # A deadline may lie in the past: a trial that is stopped late has used up its time already.
        self._now = engine.now = max(self._now, min(dues))
        if ticks_at is not None and ticks_at <= self._now:
            self._happen(ev.Tick(at=self._now))
        elif answers_at is not None and answers_at <= self._now:
            self._happen(answers.popleft())
        else:
            for what in engine.advance():
                if isinstance(what, world.Reported) and what.trial not in self._savers:
                    self._savers.add(what.trial)
                    self._happen(_first_checkpoint(what, self._now))
                self._happen(_as_event(what, self._now))

    def _happen(self, event: ev.Event) -> None:
        self._events += 1
        started = self._clock()
        commands = self._scheduler.handle(event)
        self._driver_cpu_s += self._clock() - started
        self._do(commands)

    def _do(self, commands: list[ev.Command]) -> None:
        for command in commands:
            if type(command) is not ev.Record:
                self._actions[type(command)](command)
            elif self._facts is not None:
                self._facts.append(command.fact)  # type: ignore[arg-type]

    def _ask(self, question: ev.Ask | ev.Judge) -> None:
        """Ask; the optimizer answers one question after the other, and takes `suggestion_s` for a suggestion."""
        takes_s = self._suggestion_s if type(question) is ev.Ask else 0.0
        self._thinks_until = max(self._thinks_until, self._now) + takes_s
        started = self._clock()
        answer = self._session.answer(question, self._thinks_until, self._session.show(question))
        self._driver_cpu_s += self._clock() - started
        self._answers.append(answer)

    def _run(self, command: ev.Run) -> None:
        trial = self._scheduler.record.runs[command.trial]
        self._engine.assign(
            command.workers,
            command.trial,
            attempt=command.attempt,
            params=trial.params,
            seed=trial.seed,
            milestones=self._scheduler.milestones(command.trial),
            start_from=self._scheduler.start_from(command.trial),
        )

    def _start_worker(self, command: ev.StartWorker) -> None:
        self._engine.start_worker(WorkerSpec(name=command.worker, module="", config=b"", payload=b""))


def _first_checkpoint(what: world.Reported, at: float) -> ev.Event:
    """Return the event of a first checkpoint; the scheduler needs no later ones."""
    return ev.CheckpointWritten(
        at=at, worker=what.worker, trial=what.trial, attempt=what.attempt, step=what.step, path=""
    )


def _as_event(what: world.Happening, at: float) -> ev.Event:
    if isinstance(what, world.Reported):
        return ev.PointsReported(
            at=at,
            worker=what.worker,
            trial=what.trial,
            attempt=what.attempt,
            step=what.step,
            metrics=what.metrics,  # type: ignore[arg-type]
            waits=what.waits,
            number=what.step,
        )
    if isinstance(what, world.Ended):
        return ev.AttemptEnded(
            at=at,
            worker=what.worker,
            trial=what.trial,
            attempt=what.attempt,
            outcome=what.outcome,
            value=what.value,
            error=what.error,
            alike=what.error or "",
        )
    if isinstance(what, world.Joined):
        return ev.WorkerArrived(at=at, worker=what.worker, host="simulated")
    return ev.WorkerGone(at=at, worker=what.worker, ending=what.ending)
