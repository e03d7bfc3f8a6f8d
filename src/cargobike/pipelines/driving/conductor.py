"""The conductor of a run: decides what is begun, kept, tried again and given up. Pure: events in, commands out.

It begins with what the journal says. A step that is asked for again is compared with what was asked for in its place
before: one that is done has its result at once, one that had begun is looked after, the others run. Every fact is
written before what follows from it is done, so that a driver may be killed between any two commands.
"""

from __future__ import annotations

import heapq
import math
from enum import Enum
from typing import Final

import msgspec

from cargobike.pipelines.driving import events
from cargobike.pipelines.driving.events import Command, Event, Options, Outcome
from cargobike.pipelines.facts import AttemptEnded, StepAsked, StepEnded, StepKind, StepStarted, StepState
from cargobike.pipelines.record import RunRecord, StepRecord
from cargobike.pipelines.values.value import digest_of

MOST_LOST: Final = 3
"""How often the processes of an attempt may be lost through no fault of the step, in a row."""
_MOST_BACKOFF_S: Final = 3600.0


class _Stage(Enum):
    INPUTS = "waits for inputs"
    LOOKED = "is looked up"
    RECOVERED = "is recovered"
    READY = "waits for a place"
    RUNNING = "runs"
    PAUSED = "waits for its next attempt"
    SETTLED = "is at its end"


class _Live(msgspec.Struct):
    """A step that was asked for by this driver."""

    options: Options
    kind: StepKind
    stage: _Stage = _Stage.INPUTS
    missing: int = 0
    key: str = ""
    tries: int = 0
    lost: int = 0
    deadline: float = math.inf
    timed_out: bool = False
    again_at: float = math.inf


class Conductor:
    """The state of a run.

    Args:
        record: What the journal says; the conductor adds every fact that it has written.
        parallel: How many steps may run at once.
        accept_changes: Whether steps that are not what they were are run anew; else they are refused.
        use_cache: Whether results of earlier runs may be used.
    """

    def __init__(
        self, record: RunRecord, *, parallel: int, accept_changes: bool = False, use_cache: bool = True
    ) -> None:
        self.record = record
        self._parallel = parallel
        self._accept_changes = accept_changes
        self._use_cache = use_cache
        self._live: dict[int, _Live] = {}
        self._dependents: dict[int, list[int]] = {}
        self._ready: list[int] = []
        self._running: set[int] = set()
        self._paused: set[int] = set()
        self._renewed: set[int] = set()
        self._retried = frozenset(record.retried)
        self._is_closing = False
        self._is_stopped = False
        self._commands: list[Command] = []

    def handle(self, event: Event) -> list[Command]:
        """Handle an event; returns the commands that follow from it, in order."""
        self._commands = []
        if isinstance(event, events.Asked):
            self._asked(event.ask, event.options)
        elif isinstance(event, events.Ended):
            self._ended(event)
        elif isinstance(event, events.LookedUp):
            self._looked_up(event)
        elif isinstance(event, events.Recovered):
            self._recovered(event)
        elif isinstance(event, events.ProcessesLost):
            for step in sorted(self._running):
                outcome = Outcome(ok=False, error=event.reason, lost=True)
                self._ended(events.Ended(event.at, step, self.record.steps[step].attempt, outcome))
        elif isinstance(event, events.Passed):
            self._passed(event.at)
        else:
            self._close(event)
        self._begin_ready(event.ask.at if isinstance(event, events.Asked) else event.at)
        return self._commands

    @property
    def is_over(self) -> bool:
        """Whether nothing runs, and nothing that waits will be begun."""
        if self._running:
            return False
        return self._is_closing or all(live.stage is _Stage.SETTLED for live in self._live.values())

    @property
    def running(self) -> frozenset[int]:
        """The steps that run in processes."""
        return frozenset(self._running)

    @property
    def next_time(self) -> float:
        """When something is due; infinity if nothing is."""
        deadlines = [self._live[step].deadline for step in self._running]
        return min([*deadlines, *(self._live[step].again_at for step in self._paused)], default=math.inf)

    # -- asking ------------------------------------------------------------------------------------------------------

    def _asked(self, ask: StepAsked, options: Options) -> None:
        known = self.record.steps.get(ask.step)
        live = self._live[ask.step] = _Live(options, ask.kind)
        if known is not None and not self._is_same(known, ask):
            if not self._accept_changes:
                self._commands.append(events.Refuse(ask.step, _difference(known, ask)))
                return
            self._renewed.add(ask.step)
            known = None
        if known is None:
            self._write(ask)
        elif known.state.is_done or (known.state.has_raised and ask.step not in self._retried):
            self._settle(ask.step)
            return
        elif known.is_open:
            live.stage = _Stage.RECOVERED
            live.tries = 0 if known.state.has_raised else len(known.attempts)
            self._commands.append(events.Recover(ask.step, known.attempt))
            return
        self._wait_for_inputs(ask.step, live)

    def _is_same(self, known: StepRecord, ask: StepAsked) -> bool:
        return (
            known.name == ask.name
            and known.kind == ask.kind
            and known.code == ask.code
            and known.digest == ask.digest
            and known.after == ask.after
            and self._renewed.isdisjoint(ask.after)
        )

    def _wait_for_inputs(self, step: int, live: _Live) -> None:
        live.stage = _Stage.INPUTS
        after = set(self.record.steps[step].after)
        failed = [one for one in after if self._has_failed(one)]
        if failed:
            self._skip(step, min(failed))
            return
        waiting = [one for one in after if not self._is_done(one)]
        live.missing = len(waiting)
        for one in waiting:
            self._dependents.setdefault(one, []).append(step)
        if not waiting:
            self._inputs_are_there(step, live)

    def _inputs_are_there(self, step: int, live: _Live) -> None:
        record = self.record.steps[step]
        if live.options.cache_s > 0 and record.kind is StepKind.FUNCTION:
            results = [self.record.steps[one].result for one in record.after]
            digests = ["" if result is None else result.digest for result in results]
            live.key = digest_of(*(text.encode() for text in (record.name, record.code, record.digest, *digests)))
            if self._use_cache:
                live.stage = _Stage.LOOKED
                self._commands.append(events.LookUp(step, live.key, live.options.cache_s))
                return
        self._make_ready(step, live)

    def _looked_up(self, event: events.LookedUp) -> None:
        live = self._live[event.step]
        if live.stage is not _Stage.LOOKED:
            return
        if event.hit is None:
            self._make_ready(event.step, live)
            return
        self._write(
            StepEnded(
                at=event.at,
                step=event.step,
                state=StepState.CACHED,
                result=event.hit.result,
                source=event.hit.source,
            )
        )
        self._settle(event.step)

    def _recovered(self, event: events.Recovered) -> None:
        live = self._live[event.step]
        if live.stage is not _Stage.RECOVERED:
            return
        if event.outcome is not None:
            live.tries += 1
            self._judge(event.at, event.step, live, event.outcome)
        else:
            self._wait_for_inputs(event.step, live)

    # -- running -----------------------------------------------------------------------------------------------------

    def _make_ready(self, step: int, live: _Live) -> None:
        live.stage = _Stage.READY
        heapq.heappush(self._ready, step)

    def _begin_ready(self, at: float) -> None:
        while self._ready and not self._is_closing:
            step = self._ready[0]
            live = self._live[step]
            if live.kind is StepKind.FUNCTION and len(self._running) >= self._parallel:
                return
            heapq.heappop(self._ready)
            attempt = self.record.steps[step].attempt + 1
            live.stage, live.tries, live.timed_out = _Stage.RUNNING, live.tries + 1, False
            live.deadline = at + live.options.timeout_s
            token = self.record.steps[step].token or _token(self.record.id, step, attempt)
            self._write(StepStarted(at=at, step=step, attempt=attempt, token=token))
            if live.kind is StepKind.FUNCTION:
                self._running.add(step)
            self._commands.append(events.Begin(step, attempt))

    def _ended(self, event: events.Ended) -> None:
        live = self._live.get(event.step)
        if live is None or live.stage is not _Stage.RUNNING or self.record.steps[event.step].attempt != event.attempt:
            return
        self._running.discard(event.step)
        if self._is_stopped and not event.outcome.ok:
            live.stage = _Stage.READY  # it was ended by us: it is begun again when the run is resumed
            return
        self._judge(event.at, event.step, live, event.outcome)

    def _judge(self, at: float, step: int, live: _Live, outcome: Outcome) -> None:
        record = self.record.steps[step]
        if not outcome.ok and live.timed_out:
            limit = f"It took longer than {live.options.timeout_s:g} s, its timeout."
            outcome = msgspec.structs.replace(
                outcome, error=f"{limit}\n{outcome.error}".strip(), failure=None, refused=False
            )
        if not outcome.ok and self._may_try_again(live, outcome):
            if outcome.lost:
                live.lost += 1
                live.tries -= 1
            pause_s = 0.0 if outcome.lost else min(_MOST_BACKOFF_S, live.options.backoff_s * 2 ** (live.tries - 1))
            again_at = at + pause_s
            self._write(AttemptEnded(at=at, step=step, attempt=record.attempt, error=outcome.error, again_at=again_at))
            live.stage, live.again_at = _Stage.PAUSED, again_at
            self._paused.add(step)
            self._passed(at)
            return
        self._write(
            StepEnded(
                at=at,
                step=step,
                state=_state_after(outcome),
                attempt=record.attempt,
                result=outcome.result,
                error=outcome.error,
                failure=outcome.failure,
                seconds=outcome.seconds,
                cpu_s=outcome.cpu_s,
                peak_memory_bytes=outcome.peak_memory_bytes,
            )
        )
        if outcome.ok and live.key:
            self._commands.append(events.Remember(step, live.key))
        self._settle(step)

    def _may_try_again(self, live: _Live, outcome: Outcome) -> bool:
        if outcome.final:
            return False
        return live.lost < MOST_LOST if outcome.lost else live.tries <= live.options.retries

    def _passed(self, at: float) -> None:
        for step in sorted(self._running):
            live = self._live[step]
            if at >= live.deadline and not live.timed_out:
                live.timed_out, live.deadline = True, math.inf
                self._commands.append(events.EndAttempt(step, self.record.steps[step].attempt))
        for step in sorted(self._paused):
            live = self._live[step]
            if at >= live.again_at:
                self._paused.discard(step)
                live.again_at = math.inf
                self._make_ready(step, live)

    # -- ending ------------------------------------------------------------------------------------------------------

    def _settle(self, step: int) -> None:
        self._live[step].stage = _Stage.SETTLED
        self._commands.append(events.Settle(step))
        has_failed = self._has_failed(step)
        for dependent in self._dependents.pop(step, ()):
            live = self._live[dependent]
            if live.stage is not _Stage.INPUTS:
                continue
            if has_failed:
                self._skip(dependent, step)
                continue
            live.missing -= 1
            if not live.missing:
                self._inputs_are_there(dependent, live)

    def _skip(self, step: int, because_of: int) -> None:
        if self.record.steps[step].state is not StepState.SKIPPED:
            cause = self.record.steps[because_of]
            self._write(
                StepEnded(
                    at=self.record.last_step_at(because_of),
                    step=step,
                    state=StepState.SKIPPED,
                    # What was skipped itself says which step failed, and how.
                    error=cause.error
                    if cause.state is StepState.SKIPPED
                    else f"Step {because_of} ({cause.name}), whose result it needs, {cause.state}: {_last_line(cause)}",
                )
            )
        self._settle(step)

    def _close(self, event: events.Left | events.Stopped) -> None:
        if isinstance(event, events.Stopped):
            self._is_stopped = True
            for step in sorted(self._running):
                self._commands.append(events.EndAttempt(step, self.record.steps[step].attempt))
        elif not event.failed:
            return
        self._is_closing = True
        self._paused.clear()

    # -- facts -------------------------------------------------------------------------------------------------------

    def _write(self, fact: StepAsked | StepStarted | AttemptEnded | StepEnded) -> None:
        self._commands.append(events.Write(fact))
        self.record.apply(fact)

    def _is_done(self, step: int) -> bool:
        live = self._live.get(step)
        return live is not None and live.stage is _Stage.SETTLED and self.record.steps[step].state.is_done

    def _has_failed(self, step: int) -> bool:
        live = self._live.get(step)
        return live is not None and live.stage is _Stage.SETTLED and not self.record.steps[step].state.is_done


def _state_after(outcome: Outcome) -> StepState:
    """Return what became of a step whose last attempt has ended."""
    if outcome.ok:
        return StepState.COMPLETED
    return StepState.REFUSED if outcome.refused else StepState.FAILED


def _token(run: str, step: int, attempt: int) -> str:
    """Return what names a step to what it makes; one that is run anew is another, further attempts are not."""
    return f"{run}/{step}" if attempt == 1 else f"{run}/{step}.{attempt}"


def _difference(known: StepRecord, ask: StepAsked) -> str:
    """Say how a step differs from the one that was asked for in its place before."""
    if known.name != ask.name or known.kind != ask.kind:
        what = f"before it was {known.name}, now it is {ask.name}"
    elif known.code != ask.code:
        what = f"the code of {ask.name} has changed"
    else:
        names = dict.fromkeys([*known.inputs, *ask.inputs])
        changed = [name for name in names if _digest(known, name) != _digest(ask, name)]
        inputs = ", ".join(f"{name} was {known.inputs.get(name)} and is {ask.inputs.get(name)}" for name in changed[:3])
        what = f"{ask.name} is called with something else: {inputs or 'results of other steps'}"
    return f"Step {ask.step} is not what it was when the run was recorded: {what}."


def _digest(step: StepRecord | StepAsked, name: str) -> str:
    value = step.inputs.get(name)
    return "" if value is None else value.digest


def _last_line(step: StepRecord) -> str:
    """Return what a step's error comes down to."""
    return step.error.strip().rpartition("\n")[2] or "it has no result."
