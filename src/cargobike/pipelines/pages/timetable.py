"""Schedules as the dashboard shows them."""

from __future__ import annotations

from typing import Final

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.pipelines.pages.answers import FiringLine, ScheduleLine, ScheduleList
from cargobike.pipelines.pages.listing import cause_in_words, iso
from cargobike.pipelines.scheduling.front import Schedule
from cargobike.pipelines.scheduling.keeping.book import Book
from cargobike.store.files.storages import storage_of

_FIRINGS: Final = 10


def all_schedules(project: ProjectFolder) -> ScheduleList:
    """Return the schedules of a project, by name."""
    try:
        states = Book(storage_of(project)).schedules()
    except (CargobikeError, OSError) as error:
        return ScheduleList([], str(error))
    return ScheduleList([line_of_schedule(Schedule(state, project)) for state in states], "")


def schedule_in(project: ProjectFolder, name: str) -> Schedule:
    """Return a schedule.

    Raises:
        NotFoundError: If there is none of that name; says which there are.
    """
    return Schedule(Book(storage_of(project)).schedule(name), project)


def line_of_schedule(schedule: Schedule) -> ScheduleLine:
    """Return a schedule as lists show it."""
    plan, due = schedule.state.plan, schedule.next_time
    return ScheduleLine(
        schedule=schedule.name,
        pipeline=str(plan.target),
        words=schedule.words,
        next_at=None if due is None or schedule.is_paused else iso(due.timestamp()),
        is_paused=schedule.is_paused,
        overlap=plan.overlap,
        firings=[
            FiringLine(iso(firing.at), firing.run, firing.outcome, cause_in_words(firing.cause), firing.note)
            for firing in reversed(schedule.firings[-_FIRINGS:])
        ],
    )
