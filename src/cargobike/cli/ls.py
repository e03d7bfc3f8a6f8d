"""`cargobike ls`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cargobike import project
from cargobike.cli.opening import synced_index
from cargobike.cli.printing import (
    age,
    cell,
    console,
    duration,
    experiment_as_json,
    number,
    print_json,
    print_table,
    spent_s,
    state_cell,
    table,
)
from cargobike.core.records import ExperimentState
from cargobike.store.index import ExperimentRow


class Sort(StrEnum):
    """What a list of experiments can be sorted by."""

    STARTED = "started"
    NAME = "name"
    STATE = "state"
    BEST = "best"
    DURATION = "duration"
    TRIALS = "trials"


def ls(
    state: Annotated[list[ExperimentState] | None, typer.Option(help="Only these; may be repeated.")] = None,
    sort: Annotated[Sort, typer.Option(help="What to sort by.")] = Sort.STARTED,
    ascending: Annotated[bool, typer.Option("--ascending", help="Smallest or oldest first.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="How many; 0 for all.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List experiments, the newest first."""
    with synced_index() as index:
        rows = index.experiments(states=state or (), sort=sort.value, descending=not ascending, limit=limit or None)
        total = len(index.names())
    if as_json:
        print_json([experiment_as_json(row) for row in rows])
        return
    out = console()
    if not rows:
        found = "no experiments that fit" if total else "no experiments yet"
        out.print(f"There are {found} in {project.current().root}.")
        return
    _print(rows)
    if state is None and total > len(rows):
        out.print(f"{total - len(rows)} more; --limit 0 shows all.", style="dim")


def _print(rows: list[ExperimentRow]) -> None:
    made = table("ID", "STATE", "NAME", "TRIALS", "BEST", "DURATION", "STARTED", right=("TRIALS", "BEST"))
    for row in rows:
        wanted = row.header.num_trials or row.trials
        made.add_row(
            cell(row.id, "bold"),
            state_cell(row.state),
            cell(row.name),
            cell(f"{row.trials_done}/{wanted}"),
            cell(number(row.best_value)),
            cell(duration(spent_s(row))),
            cell(age(row.started_at)),
        )
    print_table(made)
    for row in rows:
        if row.problem:
            console().print(cell(f"{row.id}: {row.problem}", "red"))
