"""The policy: from the state of a schedule and an event to its next state.

It has no clock and does nothing. What is to be done follows from the state alone (`commands`), so that a scheduler that
takes over from one that was killed does what is left to do. Whoever wants to change a state has to be first to write
the next one (`keeping/book.py`): of several schedulers that decide about the same state one succeeds.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from cargobike.core.values.times import on_calendar
from cargobike.pipelines.scheduling.plan import times_of
from cargobike.pipelines.scheduling.policy.events import (
    AnyEvent,
    Asked,
    Cancel,
    Command,
    Launch,
    Looked,
    PauseAsked,
    RemoveAsked,
    ResumeAsked,
    RunOver,
    Ticked,
)
from cargobike.pipelines.scheduling.policy.state import MOST_KEPT, Firing, Outcome, State, key_of, run_at, run_by

GRACE_S: Final = 60.0
"""A time that is noticed so long after it came is still on time."""

BACK_S: Final = 60.0
"""A clock that shows so much less than the last decided time was set back; less is two clocks that differ a little."""

MOST_CAUGHT_UP: Final = 1000
"""`catch_up="all"` makes up for so many of the newest times."""

MOST_WAITING: Final = 1000


def begin(name: str, event: Asked) -> State:
    """Return the state of a new schedule."""
    return State(name=name, plan=event.plan, created=event.at, decided=event.at, marks=dict(event.marks), by=event.by)


def handle(state: State, event: AnyEvent) -> State:
    """Return the next state of a schedule; the very same one if an event changes nothing."""
    match event:
        case Asked():
            return _asked(state, event)
        case PauseAsked():
            return state if not state.is_on else replace(state, is_paused=True, by=event.by)
        case ResumeAsked():
            return state if not state.is_paused else _resumed(state, event)
        case RemoveAsked():
            return state if state.is_removed else _removed(state, event)
        case Ticked():
            return _ticked(state, event.at) if state.is_on else state
        case Looked():
            return _looked(state, event)
        case RunOver():
            return _run_over(state, event)


def commands(state: State) -> list[Command]:
    """Return what has to be done, or to have been done, in a state; doing it again must do no harm."""
    launches: list[Command] = [Launch(firing) for firing in state.active]
    return launches + [Cancel(firing.run) for firing in state.active if firing.is_cancelled]


def next_time(state: State) -> float | None:
    """Return when the clock sets a schedule off next; `None` if it does not."""
    times = times_of(state.plan) if state.is_on else None
    time = None if times is None else times.next_after(state.decided)
    while times is not None and time is not None and time in state.ahead:
        time = times.next_after(time)
    return time


def is_to_look(state: State, key: str) -> bool:
    """Tell whether a trigger is to be looked at: not while what it saw last still waits."""
    return state.is_on and not any(firing.cause.get("trigger") == key for firing in state.waiting)


def _asked(state: State, event: Asked) -> State:
    if state.is_removed:
        new = begin(state.name, event)
        return replace(new, fired=state.fired, active=state.active, over=state.over, ahead=_ahead(state, event.at))
    if state.plan.is_same_as(event.plan):
        return state
    marks = {key: state.marks.get(key, mark) for key, mark in event.marks.items()}
    changed = replace(state, plan=event.plan, marks=marks, by=event.by)
    if state.plan.has_times_of(event.plan):  # new code, or another argument, must not delay it
        changed = replace(changed, plan=replace(event.plan, start=state.plan.start))
    else:
        changed = replace(changed, decided=event.at, ahead=_ahead(state, event.at))
    return _go_on(changed)


def _resumed(state: State, event: ResumeAsked) -> State:
    """Go on: what came while it was paused does not count."""
    resumed = replace(
        state,
        is_paused=False,
        decided=max(state.decided, event.at),
        marks={**state.marks, **event.marks},
        by=event.by,
    )
    return _go_on(resumed)


def _removed(state: State, event: RemoveAsked) -> State:
    for firing in state.waiting:
        state = _ended(state, firing, "skipped", event.at, "the schedule was deleted")
    return replace(state, waiting=(), is_removed=True, is_paused=False, marks={}, by=event.by)


def _ticked(state: State, at: float) -> State:
    if state.decided - at > BACK_S:
        # Without this a clock that was a year ahead for a moment would silence the schedule for a year.
        state = replace(state, decided=at, ahead=_ahead(state, at))
    first = next_time(state)
    times = times_of(state.plan)
    if first is None or first > at or times is None:
        return state
    due = [time for time in times.last(MOST_CAUGHT_UP + 1, state.decided, at) if time not in state.ahead]
    fire = due[-MOST_CAUGHT_UP:] if state.plan.catch_up == "all" else due[-1:]
    if state.plan.catch_up == "none" and at - fire[-1] > GRACE_S:
        fire = []
    missed = due[: len(due) - len(fire)]
    state = replace(state, decided=due[-1], ahead=tuple(time for time in state.ahead if time > due[-1]))
    if missed:
        many = " or more" if len(due) > MOST_CAUGHT_UP else ""
        words = f"{len(missed)}{many} until {on_calendar(missed[-1]):%Y-%m-%d %H:%M:%S} UTC"
        firing = Firing(run="", at=at, due=missed[0], count=len(missed))
        state = _ended(state, firing, "missed", at, words)
    for time in fire:
        cause = {"schedule": state.name, "kind": "time", "due": on_calendar(time).isoformat()}
        state = _fire(state, Firing(run=run_at(state.name, time), at=at, due=time, cause=cause), at)
    return state


def _looked(state: State, event: Looked) -> State:
    key = key_of(event.trigger)
    if not is_to_look(state, key) or key not in {key_of(trigger) for trigger in state.plan.when}:
        return state
    if state.marks.get(key, "") != event.since:
        return state  # it was looked at by another scheduler in the meantime
    if event.seen.mark == event.since and event.seen.cause is None:
        return state
    state = replace(state, marks={**state.marks, key: event.seen.mark})
    if event.seen.cause is None:
        return state
    cause = {
        **event.seen.cause,
        "schedule": state.name,
        "kind": event.trigger.kind,
        "subject": event.trigger.subject,
        "trigger": key,
    }
    run = run_by(state.name, event.trigger, state.fired + 1)
    return _fire(state, Firing(run=run, at=event.at, cause=cause), event.at)


def _fire(state: State, firing: Firing, at: float) -> State:
    state = replace(state, fired=state.fired + 1)
    if not state.active and not state.waiting:
        return replace(state, active=(firing,))
    busy = (state.active or state.waiting)[0].run
    if state.plan.overlap == "skip":
        return _ended(state, firing, "skipped", at, f"{busy} was still at work")
    if state.plan.overlap == "queue":
        if len(state.waiting) >= MOST_WAITING:
            return _ended(state, firing, "skipped", at, f"{MOST_WAITING} others were waiting")
        return replace(state, waiting=(*state.waiting, firing))
    for older in state.waiting:
        state = _ended(state, older, "skipped", at, f"{firing.run} came before it could begin")
    active = tuple(replace(each, is_cancelled=True) for each in state.active)
    return replace(state, active=active, waiting=(firing,))


def _run_over(state: State, event: RunOver) -> State:
    for firing in state.active:
        if firing.run == event.run:
            rest = tuple(each for each in state.active if each.run != event.run)
            state = _ended(replace(state, active=rest), firing, event.outcome, event.at, event.note)
            return _go_on(state)
    return state


def _go_on(state: State) -> State:
    """Begin with what waits, if nothing else is at work."""
    if state.active or not state.waiting or not state.is_on:
        return state
    return replace(state, active=state.waiting[:1], waiting=state.waiting[1:])


def _ended(state: State, firing: Firing, outcome: Outcome, at: float, note: str) -> State:
    over = replace(firing, outcome=outcome, ended=at, note=note)
    return replace(state, over=(*state.over, over)[-MOST_KEPT:])


def _ahead(state: State, at: float) -> tuple[float, ...]:
    """Return the times after a moment that have been fired already, which must not fire again."""
    decided = (*state.over, *state.active, *state.waiting)
    fired = {firing.due for firing in decided if firing.run and firing.due is not None}
    return tuple(sorted(due for due in {*state.ahead, *fired} if due > at))
