"""`cargobike ls`."""

from __future__ import annotations

import re
import time
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from cargobike.cli.printing import age, cell, console, print_json, print_table, table
from cargobike.core.records import ExperimentState
from cargobike.core.values.words import count, duration, number
from cargobike.experiments.commands.naming import complete_tag
from cargobike.experiments.commands.opening import synced_index, unread_folders
from cargobike.experiments.commands.printing import experiment_as_json, spent_s, state_cell
from cargobike.experiments.index.index import EVERYWHERE, ExperimentRow, Where
from cargobike.store.files import project


class Sort(StrEnum):
    """What a list of experiments can be sorted by."""

    STARTED = "started"
    NAME = "name"
    STATE = "state"
    BEST = "best"
    DURATION = "duration"
    TRIALS = "trials"


def ls(
    *,
    state: Annotated[list[ExperimentState] | None, typer.Option(help="Only these; may be repeated.")] = None,
    name: Annotated[str, typer.Option(help="Only names that contain this, or fit a pattern with * and ?.")] = "",
    tag: Annotated[
        list[str] | None, typer.Option(help="Only with this tag; may be repeated.", autocompletion=complete_tag)
    ] = None,
    user: Annotated[str, typer.Option(help="Only those of this user.")] = "",
    since: Annotated[str, typer.Option(metavar="WHEN", help="Only newer: 30min, 12h, 7d, or 2026-11-15.")] = "",
    until: Annotated[str, typer.Option(metavar="WHEN", help="Only older.")] = "",
    sort: Annotated[Sort, typer.Option(help="What to sort by.")] = Sort.STARTED,
    best: Annotated[bool, typer.Option("--best", help="The same as --sort best.")] = False,
    ascending: Annotated[bool, typer.Option("--ascending", help="Smallest or oldest first.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="How many; 0 for all.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List experiments, the newest first."""
    where = Where(name=name, tags=tag or (), user=user, since=read_time(since), until=read_time(until))
    key = Sort.BEST if best else sort
    with synced_index() as index:
        rows = index.experiments(
            states=state or (), where=where, sort=key.value, descending=not ascending, limit=limit or None
        )
        names = index.names()
    total = len(names)
    unread = sum(1 for _ in unread_folders(project.current(), {one for one, _ in names}))
    if unread:
        left = f"{count(unread, 'folder')} that cannot be read {'is' if unread == 1 else 'are'} left out"
        typer.secho(f"{left}; cargobike doctor says why.", fg="yellow", err=True)
    if as_json:
        print_json([experiment_as_json(row) for row in rows])
        return
    out = console()
    if not rows:
        answer = "no experiments that fit" if total else "no experiments yet"
        out.print(f"There are {answer} in {project.current().root}.")
        return
    _print(rows)
    if project.lies_above():
        typer.secho(f"The project is {project.current().root}.", dim=True, err=True)
    if state is None and where == EVERYWHERE and total > len(rows):
        out.print(f"{total - len(rows)} more; --limit 0 shows all.", style="dim")


def read_time(text: str) -> float | None:
    """Read an age (`30min`, `12h`, `7d`, `2w`) or a date and time; returns seconds since the epoch."""
    if not text:
        return None
    span = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)", text)
    if span:
        return time.time() - float(span[1]) * {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}[span[2]]
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time; write 30min, 12h, 7d, 2w, 2026-11-15 or 2026-11-15T08:30"
        ) from None


def _print(rows: list[ExperimentRow]) -> None:
    headings = ["ID", "STATE", "NAME", "TRIALS", "BEST", "DURATION", "STARTED"]
    has_tags = any(row.tags for row in rows)
    tags = ["TAGS"] if has_tags else []
    grid = table(
        *headings,
        *tags,
        right=("TRIALS", "BEST"),
        shortened=("NAME", "TAGS"),
        optional=("STARTED", "DURATION", "TAGS"),  # ids begin with the time of the start
    )
    for row in rows:
        wanted = row.header.num_trials or row.trials
        grid.add_row(
            cell(row.id, "bold"),
            state_cell(row.state),
            cell(row.name),
            cell(f"{row.trials_done}/{wanted}"),
            cell(number(row.best_value)),
            cell(duration(spent_s(row))),
            cell(age(row.started_at)),
            *([cell(" ".join(row.tags))] if has_tags else []),
        )
    print_table(grid)
    for row in rows:
        if row.problem:
            console().print(cell(f"{row.id}: {row.problem}", "red"))
