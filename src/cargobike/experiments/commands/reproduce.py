"""`cargobike reproduce`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.cli.terminal import neutralized
from cargobike.experiments import front as experiment
from cargobike.experiments.commands.naming import ExperimentId
from cargobike.experiments.results.reproduction import MetricComparison, Reproduction

_MOST_SHOWN = 50


def reproduce(
    which: ExperimentId,
    *,
    trial: Annotated[str | None, typer.Option(metavar="NUMBER|best", help="Only this one. [default: all]")] = None,
    tolerance: Annotated[float, typer.Option(help="By which share of itself a number may differ.")] = 0.0,
    fresh_env: Annotated[
        bool, typer.Option("--fresh-env", help="Make an environment of the recorded packages.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="How many at once. [default: as before]")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")] = False,
) -> None:
    """Run the recorded code of an experiment again, and say metric by metric whether it comes out the same."""
    reproduction = experiment.reproduce(
        which, trial=trial, tolerance=tolerance, fresh_env=fresh_env, workers=workers, quiet=quiet or as_json
    )
    if as_json:
        print_json({**msgspec.to_builtins(reproduction), "is_same": reproduction.is_same})
    else:
        _print(reproduction)
    if not reproduction.is_same:
        raise typer.Exit(1)


def _print(reproduction: Reproduction) -> None:
    out = console()
    grid = table("TRIAL", "METRIC", "KIND", "THEN", "NOW", "VERDICT", right=("THEN", "NOW"))
    shown = [*reproduction.differences, *(one for one in reproduction.comparisons if one.is_same)][:_MOST_SHOWN]
    for one in sorted(shown, key=lambda one: one.trial):
        grid.add_row(
            cell(f"{one.trial:04d}"),
            cell(one.metric),
            cell(one.kind, "dim"),
            cell("–" if one.was is None else one.was),
            cell("–" if one.now is None else one.now),
            cell(*_verdict(one)),
        )
    print_table(grid)
    if len(reproduction.comparisons) > len(shown):
        out.print(f"{len(reproduction.comparisons) - len(shown)} more are the same.", style="dim")
    for warning in reproduction.warnings:
        typer.secho(neutralized(f"Warning: {warning}"), fg="yellow", err=True)
    if reproduction.is_same:
        typer.secho(
            f"The same: all {len(reproduction.comparisons)} metrics, repeated as {reproduction.id}.",
            fg="green",
            bold=True,
        )
    else:
        count = f"{len(reproduction.differences)} of {len(reproduction.comparisons)}"
        typer.secho(f"Not the same: {count} metrics differ, repeated as {reproduction.id}.", fg="red", bold=True)


def _verdict(one: MetricComparison) -> tuple[str, str]:
    if one.is_same:
        return "same", "green"
    return f"differs by {one.largest_difference}" if one.largest_difference is not None else "differs", "red"
