"""`cargobike bench`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from cargobike.bench.cases import Model, Outcome, Way, cases_of
from cargobike.bench.page import write_bench_page
from cargobike.bench.running import Settings, measure
from cargobike.bench.summary import HEADINGS, LINE, STEP_HEADING, facts_of, row_of, step_line, total_line
from cargobike.cli.printing import cell, print_json, print_table, table
from cargobike.core.errors import InvalidInputError

bench = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@bench.callback()
def _group() -> None:
    """Stay a group of commands, although there is only one."""


@bench.command()
def train(
    *,
    model: Annotated[
        list[Model] | None, typer.Option(help="Network to train; may be repeated. [default: all three]")
    ] = None,
    way: Annotated[list[Way] | None, typer.Option(help="How to train it; may be repeated. [default: all]")] = None,
    workers: Annotated[
        list[int] | None, typer.Option(min=1, help="How many train together; may be repeated. [default: 2]")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps that are measured.")] = 50,
    warmup: Annotated[int, typer.Option(min=0, help="Steps before that.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Rows in each worker's batch.")] = 64,
    servers: Annotated[int, typer.Option(min=1, help="Parameter servers.")] = 1,
    staleness: Annotated[int, typer.Option(min=0, help="Oldest gradient that ps-async applies, in versions.")] = 8,
    sync_every: Annotated[int, typer.Option(min=1, help="Steps between exchanges of local-sgd.")] = 16,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each worker.")] = 1,
    gpus: Annotated[
        float | None, typer.Option(min=0, help="GPUs of each worker. [default: one each, where there are any]")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help="Where workers live: local, spark, or a Spark master's address.")
    ] = "local",
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page with figures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")] = False,
) -> None:
    """Train networks of three sizes in several ways, and report images per second."""
    _check_libraries(needs_figures=report is not None)
    settings = Settings(
        steps=steps,
        warmup=warmup,
        batch=batch,
        servers=servers,
        staleness=staleness,
        sync_every=sync_every,
        threads=threads,
        gpus=gpus,
        engine=engine,
    )
    cases = cases_of([each.value for each in model or Model], [each.value for each in way or Way], workers or [2])
    outcomes: list[Outcome] = []
    try:
        for number, case in enumerate(cases, 1):
            if not as_json:
                typer.secho(f"[{number}/{len(cases)}] {case.title}, batch {batch} each", bold=True)
                typer.echo(STEP_HEADING)
            outcome = measure(case, settings, _say_nothing if as_json else _print_step)
            if outcome is None:
                break
            outcomes.append(outcome)
            if not as_json:
                typer.echo(f"{LINE}\n{total_line(outcome)}\n{LINE}\n")
    finally:
        _tell(outcomes, settings, report, as_json=as_json)
    if len(outcomes) < len(cases):
        typer.secho(f"Interrupted after {len(outcomes)} of {len(cases)} runs.", fg="yellow", err=True)
        raise typer.Exit(1)


def _check_libraries(*, needs_figures: bool) -> None:
    needed = {"torch": "pip install torch"}
    if needs_figures:
        needed["plotly"] = 'pip install "cargobike[plot]"'
    missing = [f"{module}: {cure}" for module, cure in needed.items() if find_spec(module) is None]
    if missing:
        raise InvalidInputError("This needs what is not installed:", missing)


def _print_step(step: int, found: Mapping[str, float]) -> None:
    typer.echo(step_line(step, found))


def _say_nothing(_step: int, _found: Mapping[str, float]) -> None:
    """Print JSON and nothing else, for programs."""


def _tell(outcomes: list[Outcome], settings: Settings, report: Path | None, *, as_json: bool) -> None:
    """Print what was measured, also if not everything could be."""
    facts = facts_of(settings)
    if as_json:
        print_json({"about": facts, "settings": msgspec.to_builtins(settings), "runs": msgspec.to_builtins(outcomes)})
    elif outcomes:
        made = table(*(word for word, _ in HEADINGS), right=tuple(word for word, is_number in HEADINGS if is_number))
        for outcome in outcomes:
            made.add_row(*(cell(word) for word in row_of(outcome)))
        print_table(made)
    if report is not None and outcomes:
        target = write_bench_page(outcomes, facts, report)
        typer.echo(f"Figures: {target}", err=as_json)
