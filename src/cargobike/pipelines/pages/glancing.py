"""Pipelines on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cargobike.core.layout import ProjectFolder
from cargobike.pipelines.pages.answers import RunLine
from cargobike.pipelines.pages.listing import Runs
from cargobike.pipelines.pages.timetable import all_schedules
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document

_LOOKED_AT: Final = 50
"""How many of the newest runs are looked at: what runs or has failed is among them."""
_DONE: Final = frozenset({"completed", "cached", "skipped"})


def pipeline_card(runs: Runs, project: ProjectFolder) -> Card:
    """Make the card of pipelines: what runs, what failed, what comes next."""
    return Card(
        name="pipelines",
        title="Pipelines",
        address="/pipelines",
        place=40,
        look=lambda: _look(runs, project),
        empty="No pipelines yet. Run one:",
        command="cargobike pipelines run retrain.py:retrain",
    )


def documents(runs: Runs, project: ProjectFolder) -> Iterator[Document]:
    """List all runs and schedules for search."""
    for started in runs.started():
        yield Document(
            kind="run",
            name=started.id,
            address=f"/pipelines/runs/{started.id}",
            text=f"of the pipeline {started.pipeline}" if started.pipeline else "",
            at=started.at,
        )
    for schedule in all_schedules(project).schedules:
        yield Document(
            kind="schedule",
            name=schedule.schedule,
            address="/pipelines",
            text=f"{schedule.pipeline}, {schedule.words}",
        )


def _look(runs: Runs, project: ProjectFolder) -> Glance:
    page = runs.page("", "", 0, _LOOKED_AT)
    running = [line for line in page.runs if line.state == "running"]
    newest: dict[str, RunLine] = {}
    for line in page.runs:
        newest.setdefault(line.pipeline, line)
    # A failure is news until a later run of the same pipeline went well.
    failed = [line for line in newest.values() if line.state in ("failed", "interrupted", "unreadable")]
    rest = [line for line in page.runs if line not in running and line not in failed]
    due = [(line.next_at, line) for line in all_schedules(project).schedules if line.next_at]
    due.sort(key=lambda one: one[0])
    entries = [_entry(line) for line in [*running, *failed]]
    entries += [
        Entry(line.schedule, "/pipelines#schedules-title", "waiting", f"next run of {_short(line.pipeline)}", next_at)
        for next_at, line in due[:2]
    ]
    entries += [_entry(line) for line in rest[:MOST_ENTRIES]]
    running_words = "pipeline runs" if len(running) == 1 else "pipelines run"
    failed_words = "pipeline failed" if len(failed) == 1 else "pipelines failed"
    return Glance(
        entries=entries,
        headline=len(failed) if failed and not running else len(running),
        words=failed_words if failed and not running else running_words,
        is_urgent=bool(failed),
        total=page.total,
    )


def _short(function: str) -> str:
    """Return a function without the folders of its file: `retrain.py:retrain`."""
    return function.rpartition("/")[2]


def _entry(line: RunLine) -> Entry:
    steps, done = sum(line.steps.values()), sum(line.steps.get(state, 0) for state in _DONE)
    is_running = line.state == "running"
    return Entry(
        title=line.pipeline or line.run,
        address=f"/pipelines/runs/{line.run}",
        state=line.state,
        text=line.error or f"{done} of {steps} steps",
        at=line.started_at,
        share=done / steps if is_running and steps else None,
    )
