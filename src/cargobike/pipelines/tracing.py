"""Runs of pipelines in lineage: what they have made, and what set them off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.pipelines.record import RunFolder, RunRecord, read_run, run_folders
from cargobike.pipelines.things import made_by

_MOST_KEPT: Final = 50_000
_known: dict[Path, tuple[tuple[int, int], tuple[Edge, ...]]] = {}
"""The edges of journals that this process has read, with the size and time of each: most runs never change again."""


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what each run of a project has made or changed, and the alarm, commit or data that set it off."""
    for folder in run_folders(project):
        try:
            status = folder.journal.stat()
        except OSError:
            continue
        mark = status.st_size, status.st_mtime_ns
        known = _known.get(folder.journal)
        if known is None or known[0] != mark:
            if len(_known) >= _MOST_KEPT:
                _known.clear()
            known = _known[folder.journal] = mark, _read(folder)
        yield from known[1]


def _read(folder: RunFolder) -> tuple[Edge, ...]:
    try:
        data = folder.journal.read_bytes()
        if b'"thing"' not in data and b'"cause"' not in data:
            return ()  # most runs of small steps; folding them all would take long
        return tuple(_edges_of(read_run(folder)))
    except (OSError, StoreError, NotFoundError):
        return ()  # `cargobike pipelines ls` says what is wrong with it


def _edges_of(record: RunRecord) -> Iterator[Edge]:
    run = Thing("pipeline", record.pipeline, record.id)
    told = set()
    for number in sorted(record.steps):
        step = record.steps[number]
        for made, change in made_by(step):
            if (made, change) not in told:
                told.add((made, change))
                yield Edge(made, run, detail=change or f"step {number}", at=step.started_at or step.asked_at)
    for thing, detail in _causes(record.started.cause):
        yield Edge(run, thing, "triggered by", detail, at=record.started.at)


def _causes(cause: dict[str, Any]) -> Iterator[tuple[Thing, str]]:
    """Yield the things that set off a run, as triggers tell them: alarms, commits of groups, versions of tables."""
    if monitor := cause.get("monitor"):
        yield Thing("monitor", str(monitor)), f"alarm {cause['alarm']}" if cause.get("alarm") else ""
    elif group := cause.get("group"):
        commits = cause.get("commits") or []
        detail = f"commit {commits[-1]}" if commits else ""
        yield Thing("group", str(group), str(cause.get("version", ""))), detail
    elif table := cause.get("table"):
        versions = cause.get("versions") or [""]
        yield Thing("table", str(table), str(versions[-1])), ""
