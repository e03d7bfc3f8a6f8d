"""`cargobike show`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from cargobike.cli.printing import cell, console, moment, parameters, print_json, print_table, table
from cargobike.cli.terminal import neutralized
from cargobike.core.records import TrialState
from cargobike.core.values.words import duration, number
from cargobike.experiments.commands.opening import synced_index
from cargobike.experiments.commands.printing import experiment_as_json, spent_s, state_cell, trial_as_json
from cargobike.experiments.index.index import ExperimentRow, TrialRow
from cargobike.store.files import project
from cargobike.store.history.annotations import read_annotations
from cargobike.store.history.snapshot import Snapshot, read_snapshot


def show(
    experiment: Annotated[str, typer.Argument(metavar="ID", help="Id, start or end of one, name, or `last`.")],
    trials: Annotated[int, typer.Option(min=0, help="How many trials to list, the best ones first.")] = 10,
    everything: Annotated[bool, typer.Option("--all", help="List all trials, in order.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show one experiment: its best parameters, its trials, its failures."""
    with synced_index() as index:
        row = index.experiment(index.resolve(experiment))
        if everything:
            listed = index.trials(row.id)
        else:
            listed = index.trials(row.id, sort="best", limit=trials) if trials else []
        failed = index.trials(row.id, states=[TrialState.FAILED], sort="ended", limit=1)
    folder = project.current().experiment(row.id)
    snapshot, notes = read_snapshot(folder), read_annotations(folder).notes
    if as_json:
        first = trial_as_json(failed[0]) if failed else None
        header = {
            "description": row.header.description,
            "reproduces": row.header.asked.reproduces or None,
            "asked": msgspec.to_builtins(row.header.asked.settings(), enc_hook=str),
            "seed": row.header.seed,
            "workers": row.header.workers,
            "gang": row.header.gang,
            "engine": row.header.engine,
            "isolation": row.header.isolation,
            "user": row.header.user,
            "host": row.header.host,
            "cargobike": row.header.cargobike,
            "space": row.header.space,
            "params": row.header.params,
            "notes": [{"at": one.at, "by": one.by, "text": one.text} for one in notes],
            "snapshot": _without_files(snapshot),
        }
        print_json(
            experiment_as_json(row)
            | header
            | {"first_failure": first, "trial_list": [trial_as_json(one) for one in listed]}
        )
        return
    _print_header(row, snapshot)
    for note in notes:
        console().print(cell(f"{moment(note.at)} {note.by}: {note.text}", "italic"))
    _print_trials(row, listed)
    if failed:
        _print_failure(row, failed[0])


def _without_files(snapshot: Snapshot | None) -> object:
    """Return a snapshot for programs; the hashes of all files are in `snapshot.json`."""
    if snapshot is None:
        return None
    content = msgspec.to_builtins(snapshot)
    content["sources"]["files"] = len(snapshot.sources.files)
    return content


def _facts_of(snapshot: Snapshot) -> dict[str, str]:
    """Return in a few words what was run, and where."""
    facts: dict[str, str] = {}
    if snapshot.launcher is not None and snapshot.launcher.path:
        facts["launched by"] = snapshot.launcher.path
    if (git := snapshot.git) is not None and git.commit:
        changed = f", {len(git.changed)} files not committed" if git.is_dirty else ""
        facts["commit"] = f"{git.commit[:12]} on {git.branch}{changed}"
    machine = snapshot.environment
    devices = f", {len(machine.gpus)} × {machine.gpus[0]}" if machine.gpus else ""
    facts["environment"] = (
        f"Python {machine.python}, {len(machine.packages)} packages, {machine.os}, "
        f"{machine.cores} × {machine.cpu}{devices}"
    )
    if snapshot.resources:
        facts["resources"] = ", ".join(one.name for one in snapshot.resources[:10])
    if snapshot.problems:
        facts["not kept"] = "; ".join(snapshot.problems)
    return facts


def _print_header(row: ExperimentRow, snapshot: Snapshot | None) -> None:
    out, header = console(), row.header
    out.print(cell(f"{row.name or row.id}", "bold"), state_cell(row.state), cell(row.reason))
    if header.description:
        out.print(cell(header.description))
    search = f"{header.optimizer or 'one run'}, {header.direction} {row.metric or 'value'}, seed {header.seed}"
    workers = f"{header.workers} × {header.engine}" + (f" in gangs of {header.gang}" if header.gang > 1 else "")
    counts = ", ".join(f"{count} {state.value}" for state, count in row.counts.items() if count)
    facts = {
        "id": row.id,
        "function": header.function,
        "search": search,
        "workers": workers,
        "started": f"{moment(row.started_at)}, took {duration(spent_s(row))}",
        "cost": f"{duration(row.worker_seconds)} of workers",
        "by": f"{header.user}@{header.host}, process {header.pid}",
        "trials": f"{counts or 'none'}" + (f" of {header.num_trials}" if header.num_trials else ""),
    }
    if header.asked.reproduces:
        facts["repeats"] = header.asked.reproduces
    if row.best_trial is not None:
        facts["best"] = f"{number(row.best_value)} in trial {row.best_trial}"
        facts["with"] = parameters(row.best_params)
    if row.tags:
        facts["tags"] = ", ".join(row.tags)
    if snapshot is not None:
        facts |= _facts_of(snapshot)
    grid = table("", "")
    grid.show_header = False
    for name, text in facts.items():
        grid.add_row(cell(name, "dim"), cell(text))
    print_table(grid)
    if row.problem:
        out.print(cell(row.problem, "red"))


def _print_trials(row: ExperimentRow, listed: list[TrialRow]) -> None:
    if not listed:
        return
    out = console()
    out.print()
    grid = table("TRIAL", "STATE", "VALUE", "LAST", "STEP", "TIME", "PARAMETERS", right=("VALUE", "LAST", "STEP"))
    for one in listed:
        is_best = one.number == row.best_trial
        grid.add_row(
            cell(f"{one.number:04d}", "bold" if is_best else ""),
            state_cell(one.state),
            cell(number(one.value), "bold" if is_best else ""),
            cell(number(one.last_value)),
            cell("–" if one.last_step is None else one.last_step),
            cell(duration(one.duration_s)),
            cell(parameters(one.params)),
        )
    print_table(grid)
    if row.trials > len(listed):
        out.print(f"{row.trials - len(listed)} more; --all shows all.", style="dim")


def _print_failure(row: ExperimentRow, first: TrialRow) -> None:
    out, count = console(), row.counts[TrialState.FAILED]
    what = "The only failure" if count == 1 else f"The first of {count} failures"
    out.print()
    out.print(cell(f"{what}: trial {first.number:04d}, {parameters(first.params)}", "red"))
    out.print(neutralized(first.error or "(it left no error message)").rstrip())
    out.print(f"Its output: cargobike logs {row.id} --trial {first.number}", style="dim")
