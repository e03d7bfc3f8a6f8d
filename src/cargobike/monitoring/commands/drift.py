"""`cargobike drift`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.monitoring.alarms.policy import Policy
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.reference import Reference
from cargobike.monitoring.rows.reading import count_rows
from cargobike.monitoring.showing.page import page_of
from cargobike.monitoring.showing.text import MOST_SHOWN, before_and_after, headline, sentence
from cargobike.store.history.environment import without_credentials
from cargobike.ui.paper import write_page

ALARM = 3
"""The exit code for an alarm; 1 and 2 are those of errors."""


def drift(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="What is usual: a path, a URL, a table.")],
    now: Annotated[str, typer.Argument(metavar="NOW", help="What to judge: a path, a URL, a table.")],
    *,
    window: Annotated[
        int,
        typer.Option(
            "--window",
            help="Judge windows of so many rows, one after the other. [default: all rows]",
            show_default=False,
        ),
    ] = 0,
    alarm: Annotated[
        str, typer.Option("--alarm", metavar="'K of N'", help="How many of how many windows make an alarm.")
    ] = "1 of 1",
    false_alarms: Annotated[
        float, typer.Option("--false-alarms", help="The part of windows without a shift that may raise an alarm.")
    ] = 0.05,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same judgement.", min=0)] = 1,
    columns: Annotated[
        str,
        typer.Option(
            "--columns", metavar="A,B,…", help="The columns to judge. [default: all that can be]", show_default=False
        ),
    ] = "",
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a page with everything, one file of HTML.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two tables: exit code 0 if the second looks like the first, 3 if not, 1 if they cannot be compared."""
    policy = Policy.parse(alarm)
    rows = window or count_rows(now)
    names = [name.strip() for name in columns.split(",")] if columns else None
    learned = Reference(reference, window=rows, false_alarms=false_alarms, seed=seed, columns=names)
    judgements = learned.judge_windows(now)
    raised = policy.raised(judgement.alarm for judgement in judgements)
    shown = next((one for one, is_raised in zip(judgements, raised, strict=True) if is_raised), judgements[-1])
    if report is not None:
        page = page_of(shown, reference=without_credentials(reference), now=without_credentials(now), at_s=time.time())
        report = write_page(page, report)
    if as_json:
        print_json({"alarm": any(raised), "windows": [msgspec.to_builtins(one) for one in judgements]})
    elif len(judgements) == 1:
        _print_one(shown)
    else:
        _print_windows(judgements, raised)
    if report is not None and not as_json:
        typer.echo(f"The report is in {report}.")
    if any(raised):
        raise typer.Exit(ALARM)


def _print_one(judgement: Judgement) -> None:
    console().print(cell(headline(judgement), "bold red" if judgement.alarm else "bold green"))
    made = table("COLUMN", "WHAT", "REFERENCE → NOW", "CHANCE", right=("CHANCE",), folded=("WHAT", "REFERENCE → NOW"))
    columns = {column.name: column for column in judgement.columns}
    for shift in judgement.features[:MOST_SHOWN]:
        sides = before_and_after(columns[shift.feature]) if shift.feature in columns else ""
        made.add_row(cell(shift.feature, "bold"), cell(sentence(shift)), cell(sides), cell(f"{shift.probability:.2%}"))
    if judgement.features:
        print_table(made)
    if len(judgement.features) > MOST_SHOWN:
        typer.echo(f"… and {len(judgement.features) - MOST_SHOWN} more; --json and --report have them all.")
    if judgement.ignored:
        console().print(cell(f"Not judged: {', '.join(judgement.ignored)}.", "dim"))


def _print_windows(judgements: list[Judgement], raised: list[bool]) -> None:
    made = table("WINDOW", "ROWS", "ALARM", "CHANCE", "COLUMNS", right=("WINDOW", "ROWS", "CHANCE"))
    for number, (judgement, is_raised) in enumerate(zip(judgements, raised, strict=True), 1):
        names = ", ".join(shift.feature for shift in judgement.features[:MOST_SHOWN])
        word = "ALARM" if is_raised else "unusual" if judgement.alarm else "no"
        made.add_row(cell(number), cell(judgement.rows), cell(word), cell(f"{judgement.probability:.2%}"), cell(names))
    print_table(made)
