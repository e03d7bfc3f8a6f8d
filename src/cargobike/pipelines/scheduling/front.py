"""Schedule pipelines, and look at what is scheduled: the functions behind the public names."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Trigger, look_of
from cargobike.core.running.accounts import user_name
from cargobike.core.values.times import Seconds, on_calendar
from cargobike.pipelines.scheduling.asking import make_plan
from cargobike.pipelines.scheduling.keeping.book import Book, read_name
from cargobike.pipelines.scheduling.policy.events import Asked, PauseAsked, RemoveAsked, ResumeAsked
from cargobike.pipelines.scheduling.policy.policy import begin, handle, next_time
from cargobike.pipelines.scheduling.policy.state import Firing, State, key_of
from cargobike.pipelines.scheduling.times.zones import UTC_NAME, zone_of
from cargobike.store.files import project as projects
from cargobike.store.files.storages import storage_of


class Schedule:
    """A schedule of the project: what sets off which pipeline. Attributes are as they were when it was asked for."""

    def __init__(self, state: State, project: ProjectFolder) -> None:
        self._state = state
        self._project = project

    def __repr__(self) -> str:
        return f"<Schedule {self.name}: {self.words}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._state.name

    @property
    def state(self) -> State:
        """Everything that is kept of it."""
        return self._state

    @property
    def is_paused(self) -> bool:
        """Whether nothing sets it off for now."""
        return self._state.is_paused

    @property
    def next_time(self) -> datetime | None:
        """When the clock sets it off next, in its own time zone; `None` if it does not."""
        time_s = next_time(self._state)
        return None if time_s is None else on_calendar(time_s, zone_of(self._state.plan.timezone))

    @property
    def firings(self) -> builtins.list[Firing]:
        """The last times that it was set off, the oldest first, and what became of each."""
        firings = [*self._state.over, *self._state.active, *self._state.waiting]
        return sorted(firings, key=lambda firing: (firing.at, firing.due or 0.0))

    @property
    def words(self) -> str:
        """What sets it off, in words."""
        plan = self._state.plan
        words = [f"every {_length(plan.every_s)}"] if plan.every_s else []
        words += [f"{plan.cron} ({plan.timezone})"] if plan.cron else []
        return " or ".join([*words, *(f"when {trigger}" for trigger in plan.when)])

    def pause(self) -> Schedule:
        """Let nothing set it off until `resume`; a run that is at work goes on."""
        return self._changed(lambda state: handle(state, PauseAsked(time.time(), user_name())))

    def resume(self) -> Schedule:
        """Go on after `pause`: what came in between does not count."""
        marks = _marks(self._state.plan.when, self._project)
        return self._changed(lambda state: handle(state, ResumeAsked(time.time(), marks, user_name())))

    def remove(self) -> None:
        """Delete it; a run that is at work goes on."""
        self._changed(lambda state: handle(state, RemoveAsked(time.time(), user_name())))

    def _changed(self, decide: Callable[[State], State]) -> Schedule:
        book = Book(storage_of(self._project))
        state = book.change(self.name, lambda before: decide(before or book.schedule(self.name)))
        return Schedule(state, self._project)


def schedule(
    pipeline: Callable[..., Any] | str,
    /,
    *,
    every: Seconds | None = None,
    cron: str | None = None,
    when: Trigger | Sequence[Trigger] = (),
    overlap: str | None = None,
    catch_up: str | None = None,
    timezone: str = UTC_NAME,
    name: str = "",
    **arguments: Any,
) -> Schedule:
    """Run a pipeline again and again: by the clock, or when something happened; `cargobike scheduler` does it.

    A schedule of the same name is changed. One that is asked for again as it is stays as it is.

    Args:
        pipeline: A function at the top of a file, or `"file.py:function"`.
        every: The time from one run to the next, such as `"1d"`; counted from now.
        cron: A cron expression, such as `"0 3 * * *"`, instead of that.
        when: What sets it off besides: `features.changed("teams")`, `data.arrived("s3://…")`,
            `monitoring.drifted("digits")`, or several.
        overlap: What happens if a run is still at work: `skip` (the default), `queue`, or `cancel` that run.
        catch_up: Which times are made up for that passed while no scheduler was at work: `none`, the `last` (the
            default), or `all`.
        timezone: The zone whose clocks `cron` means.
        name: What to call it; by default the function's name.
        **arguments: What the pipeline is called with, as plain data.

    Returns:
        The schedule.

    Raises:
        InvalidInputError: If something is wrong with it; says everything that is.
        NotFoundError: If what it is to wait for does not exist.

    Example:
        >>> from cargobike import pipelines
        >>> pipelines.schedule("retrain.py:retrain", cron="0 3 * * *", timezone="Europe/Oslo")  # doctest: +SKIP
        <Schedule retrain: 0 3 * * * (Europe/Oslo)>
    """
    now = time.time()
    plan = make_plan(
        pipeline,
        arguments,
        every=every,
        cron=cron,
        when=when,
        overlap=overlap,
        catch_up=catch_up,
        timezone=timezone,
        start=float(int(now)),
    )
    chosen = read_name(name or plan.target.function)
    project = projects.prepare()
    asked = Asked(now, plan, _marks(plan.when, project), user_name())

    def decide(before: State | None) -> State:
        if before is None:
            return begin(chosen, asked)
        if not name and not before.is_removed and str(before.plan.target) != str(plan.target):
            raise InvalidInputError(
                f"There is a schedule {chosen!r} of another function, {before.plan.target}. Give this one a name of "
                f"its own with name=, or write name={chosen!r} to replace that one."
            )
        return handle(before, asked)

    return Schedule(Book(storage_of(project)).change(chosen, decide), project)


def find_schedule(name: str) -> Schedule:
    """Return a schedule of the project.

    Raises:
        NotFoundError: If there is none of that name; says which there are.
    """
    project = projects.current()
    return Schedule(Book(storage_of(project)).schedule(name), project)


def schedules() -> builtins.list[Schedule]:
    """Return the schedules of the project, by name."""
    project = projects.current()
    return [Schedule(state, project) for state in Book(storage_of(project)).schedules()]


def _marks(triggers: Iterable[Trigger], project: ProjectFolder) -> dict[str, str]:
    """Return what is to be seen of triggers now: what happens from now on counts, whenever a scheduler is started."""
    return {key_of(trigger): look_of(trigger)(trigger, "", project).mark for trigger in triggers}


def _length(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
