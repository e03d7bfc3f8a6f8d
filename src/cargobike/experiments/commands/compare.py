"""`cargobike compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.cli.terminal import neutralized
from cargobike.experiments.finding import find_experiment
from cargobike.experiments.results.comparison import Comparison
from cargobike.experiments.results.comparison import compare as compare_experiments

_LONGEST: int = 60
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Id, start or end of one, name, or `last`.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    code: Annotated[bool, typer.Option(help="Show how the code differs, line by line.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what differs between two experiments: settings, code, environment, results."""
    comparison = compare_experiments(find_experiment(first), find_experiment(second))
    if as_json:
        print_json(msgspec.to_builtins(comparison))
        return
    sections: dict[str, Mapping[str, Any]] = {
        "Settings": comparison.settings,
        "Search space": comparison.space,
        "Environment": comparison.environment,
        "Packages": comparison.packages,
        "Versioned resources": comparison.resources,
        "Results": comparison.results,
    }
    for title, pairs in sections.items():
        _print_pairs(title, pairs, comparison)
    _print_code(comparison, with_lines=code)
    for warning in comparison.warnings:
        typer.secho(neutralized(warning), fg="yellow", err=True)
    if not any(sections.values()) and not comparison.code:
        console().print("They differ in nothing that is recorded.")


def _print_pairs(title: str, pairs: Mapping[str, Any], comparison: Comparison) -> None:
    if not pairs:
        return
    grid = table(title.upper(), comparison.first, comparison.second)
    for name, (left, right) in pairs.items():
        grid.add_row(cell(name), cell(_short(left)), cell(_short(right)))
    print_table(grid)
    console().print()


def _short(value: object) -> str:
    if value is None:
        return "–"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _print_code(comparison: Comparison, *, with_lines: bool) -> None:
    out = console()
    for file in comparison.code:
        out.print(cell(f"{file.name}: {file.status}", "bold"))
        if with_lines:
            for line in file.diff.splitlines():
                out.print(cell(line, _COLOURS.get(line[:1], "")))
            out.print()
