"""`cargobike pipelines show`, `graph` and `logs`."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from cargobike.cli.printing import cell, console, moment, parameters, print_json, print_table, table
from cargobike.cli.terminal import is_terminal, neutralized
from cargobike.core.errors import NotFoundError
from cargobike.pipelines.commands.describing import run_as_json, summary
from cargobike.pipelines.commands.naming import Json, RunName
from cargobike.pipelines.drawing import as_dot, as_mermaid, as_text
from cargobike.pipelines.facts import RunState
from cargobike.pipelines.record import RunRecord, find_run, read_run, state_of
from cargobike.store.files import project
from cargobike.store.files.mirror import fetch

_MOST_STEPS = 200


def show(
    name: RunName = "last",
    everything: Annotated[bool, typer.Option("--all", help=f"All steps, not only the last {_MOST_STEPS}.")] = False,
    as_json: Json = False,
) -> None:
    """Show a run: its parameters, what became of each step, what it returned."""
    record = find_run(name, project.current())
    if as_json:
        print_json(run_as_json(record))
        return
    out = console()
    out.print(cell(summary(record), "bold"))
    out.print(cell(f"started {moment(record.started.at)} by {record.started.user} on {record.host}"))
    if record.params:
        out.print(cell(f"with {parameters(record.params)}"))
    if record.started.cause:
        out.print(cell(f"set off by {parameters(record.started.cause)}"))
    made = table(
        "STEP", "NAME", "STATE", "AFTER", "SECONDS", "CPU", "MB", "RESULT", right=("STEP", "SECONDS", "CPU", "MB")
    )
    numbers = sorted(record.steps)
    shown = numbers if everything else numbers[-_MOST_STEPS:]
    if len(shown) < len(numbers):
        out.print(cell(f"{len(numbers) - len(shown)} earlier steps; --all shows them"))
    for number in shown:
        step = record.steps[number]
        error = step.error.strip().splitlines()
        made.add_row(
            cell(number),
            cell(step.name),
            cell(f"{step.state}{f' (attempt {step.attempt})' if step.attempt > 1 else ''}"),
            cell(" ".join(map(str, step.after))),
            cell(f"{step.seconds:.2f}" if step.ended_at else ""),
            cell(f"{step.cpu_s:.2f}" if step.cpu_s else ""),
            cell(f"{step.peak_memory_bytes / 1e6:.0f}" if step.peak_memory_bytes else ""),
            cell(error[-1], "red") if error else cell(step.result if step.result is not None else ""),
        )
    print_table(made)
    if record.error:
        out.print(cell(record.error.strip().splitlines()[-1], "red"))


def graph(
    name: RunName = "last",
    *,
    dot: Annotated[bool, typer.Option("--dot", help="For Graphviz.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="For Markdown.")] = False,
    as_json: Json = False,
) -> None:
    """Show which step needed which."""
    record = find_run(name, project.current())
    if dot and mermaid:
        raise typer.BadParameter("give --dot or --mermaid, not both")
    if as_json:
        steps = [record.steps[number] for number in sorted(record.steps)]
        print_json(
            {
                "run": record.id,
                "nodes": [{"step": step.number, "name": step.name, "state": step.state.value} for step in steps],
                "edges": [[one, step.number] for step in steps for one in step.after],
            }
        )
        return
    draw = as_dot if dot else as_mermaid if mermaid else as_text
    sys.stdout.write(draw(record) + "\n")


def logs(
    name: RunName = "last",
    step: Annotated[int | None, typer.Option(min=1, help="Only this step.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Print what steps printed."""
    record = find_run(name, project.current())
    fetch(record.folder)
    if step is not None and step not in record.steps:
        raise NotFoundError(f"Run {record.id} has no step {step}; it has 1 to {len(record.steps)}.", wanted=step)
    numbers = sorted(record.steps) if step is None else [step]
    if as_json:
        print_json(
            [{"step": number, "name": record.steps[number].name, **_texts(record, number)} for number in numbers]
        )
        return
    seen: dict[tuple[int, str], int] = {}
    while True:
        is_over = state_of(record) is not RunState.RUNNING
        for number in sorted(record.steps) if step is None else numbers:
            _print_new(record, number, seen, with_name=step is None)
        if is_over or not follow:
            return
        time.sleep(0.2)
        record = read_run(record.folder)


def _texts(record: RunRecord, number: int) -> dict[str, str]:
    paths = {stream: record.folder.output(number, stream) for stream in ("stdout", "stderr")}
    return {stream: path.read_text("utf-8", "replace") if path.is_file() else "" for stream, path in paths.items()}


def _print_new(record: RunRecord, number: int, seen: dict[tuple[int, str], int], *, with_name: bool) -> None:
    """Print the whole lines that are new."""
    for stream, text in _texts(record, number).items():
        start = seen.get((number, stream), 0)
        end = len(text) if text.endswith("\n") else text.rfind("\n") + 1
        if not record.steps[number].is_open:
            end = len(text)
        for line in text[start:end].splitlines():
            name = f"{number} {record.steps[number].name}: " if with_name else ""
            out = f"{name}{line}"
            sys.stdout.write((neutralized(out) if is_terminal() else out) + "\n")
        seen[number, stream] = max(start, end)
