"""`cargobike compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.cli.terminal import neutralized
from cargobike.core.values.words import duration
from cargobike.experiments.commands.naming import complete_experiment
from cargobike.experiments.finding import find_experiment
from cargobike.experiments.results.comparison import Comparison
from cargobike.experiments.results.comparison import compare as compare_experiments

_LONGEST: int = 60
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def compare(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="Id, start or end of one, name, or `last`.", autocompletion=complete_experiment
        ),
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The other one.", autocompletion=complete_experiment)],
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
    ids = (comparison.first, comparison.second)
    grid = table(title.upper(), *ids, folded=ids)
    for name, (left, right) in pairs.items():
        is_time = _is_time(title, name)
        shown = [_short(value, is_time=is_time) for value in (left, right)]
        grid.add_row(cell(_name(title, name)), *map(cell, shown))
    print_table(grid)
    console().print()


def _is_time(section: str, name: str) -> bool:
    """Tell whether this is a length of time of ours; a parameter may be called whatever its author likes."""
    if section == "Results":
        return name in ("duration_s", "worker_seconds")
    return section == "Settings" and name.endswith("_s")


def _name(section: str, name: str) -> str:
    """Return what people call it: lengths of time are shown with their units."""
    if not _is_time(section, name):
        return name
    return "worker time" if name == "worker_seconds" else name.removesuffix("_s")


def _short(value: object, *, is_time: bool) -> str:
    if value is None:
        return "–"
    if is_time and isinstance(value, int | float):
        return duration(value)
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
