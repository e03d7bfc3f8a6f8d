"""`cargobike show`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from cargobike.cli.printing import cell, console, moment, parameters, print_json, print_table, table, utc
from cargobike.cli.terminal import neutralized
from cargobike.core.asked import Feeding
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState, TrialState
from cargobike.core.seen import SpaceChanged
from cargobike.core.values.words import count, duration, number
from cargobike.experiments.commands.naming import ExperimentId
from cargobike.experiments.commands.opening import synced_index
from cargobike.experiments.commands.printing import experiment_as_json, spent_s, state_cell, trial_as_json
from cargobike.experiments.display.snapshot import reason_line
from cargobike.experiments.index.index import ExperimentRow, TrialRow
from cargobike.experiments.space_changes import change_in_words, differences
from cargobike.experiments.usage import in_words, read_usage
from cargobike.store.files import project
from cargobike.store.history.annotations import read_annotations
from cargobike.store.history.snapshot import Snapshot, read_snapshot


def show(
    experiment: ExperimentId,
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
    said = read_annotations(folder)
    snapshot, notes = read_snapshot(folder), said.notes
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
            "space_changes": [_change_as_json(change) for change in row.space_changes],
            "params": row.header.params,
            "hidden": sorted(said.hidden),
            "notes": [{"at": one.at, "by": one.by, "text": one.text} for one in notes],
            "snapshot": _without_files(snapshot),
        }
        print_json(
            experiment_as_json(row)
            | header
            | {"first_failure": first, "trial_list": [_with_usage(trial_as_json(one), folder) for one in listed]}
        )
        return
    _print_header(row, snapshot, hidden=len(said.hidden))
    for note in notes:
        console().print(cell(f"{moment(note.at)} {note.by}: {note.text}", "italic"))
    _print_trials(row, listed, folder)
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


def _change_as_json(change: SpaceChanged) -> dict[str, Any]:
    return {
        "at": utc(change.at),
        "after_trials": change.trials,
        "before": change.before,
        "space": change.space,
        "defaults": change.defaults,
        "changed": differences(change),
    }


def _print_header(row: ExperimentRow, snapshot: Snapshot | None, hidden: int) -> None:
    out, header = console(), row.header
    out.print(cell(f"{row.name or row.id}", "bold"), state_cell(row.state), cell(reason_line(row.reason)))
    if header.description:
        out.print(cell(header.description))
    goals = header.objectives or {row.metric or "value": header.direction}
    words = [header.optimizer or "one run", *(f"{way} {name}" for name, way in goals.items()), f"seed {header.seed}"]
    if header.repeats > 1:
        words.append(f"each run {header.repeats} times")
    search = ", ".join(words)
    workers = f"{header.workers} × {header.engine}" + (f" in gangs of {header.gang}" if header.gang > 1 else "")
    counts = ", ".join(f"{many} {_word(state, row.state)}" for state, many in row.counts.items() if many)
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
    if hidden:
        facts["hidden"] = f"{count(hidden, 'trial')}, left out of figures and reports"
    if row.space_changes:
        facts["space changed"] = "\n".join(change_in_words(change) for change in row.space_changes)
    if header.asked.feeding.source:
        facts["data"] = _data_in_words(header.asked.feeding)
    if header.asked.reproduces:
        facts["repeats"] = header.asked.reproduces
    if row.best_trial is not None:
        facts["best"] = f"{number(row.best_value)} in trial {row.best_trial}"
        facts["with"] = parameters(row.best_params)
    if row.tags:
        facts["tags"] = ", ".join(row.tags)
    if snapshot is not None:
        facts |= _facts_of(snapshot)
    grid = table("FACT", "DETAIL")
    grid.show_header = False
    for name, text in facts.items():
        grid.add_row(cell(name, "dim"), cell(text))
    print_table(grid)
    if row.problem:
        out.print(cell(row.problem, "red"))


def _data_in_words(feeding: Feeding) -> str:
    """Return what the function was fed with on a line."""
    kind = "training dataset " if feeding.kind == "dataset" else "table " if feeding.kind == "table" else ""
    options = ", ".join(f"{name}={value!r}" for name, value in feeding.options.items())
    return f"{kind}{feeding.label}, {count(feeding.rows, 'row')}" + (f", {options}" if options else "")


def _word(state: TrialState, of: ExperimentState) -> str:
    """Return the word for the state of a trial: what waits in an experiment that has ended was never run."""
    return "not run" if state is TrialState.PENDING and of is not ExperimentState.RUNNING else state.value


def _with_usage(trial: dict[str, Any], folder: ExperimentFolder) -> dict[str, Any]:
    """Add what a trial has used to what is said about it, for programs."""
    usage = read_usage(folder.trial(trial["trial"]).usage)
    if not usage:
        return trial
    numbers = {"mean_cpus": usage.mean_cpus, "peak_memory_bytes": usage.peak_memory_bytes}
    gpus = {"mean_gpu": usage.mean_gpu, "peak_gpu_memory_bytes": usage.peak_gpu_memory_bytes}
    pace = usage.data_pace
    rows = {} if pace is None else {"rows_per_s": pace.rows_per_s, "waited": pace.waited}
    return trial | {"usage": numbers | {name: value for name, value in gpus.items() if value is not None} | rows}


def _print_trials(row: ExperimentRow, listed: list[TrialRow], folder: ExperimentFolder) -> None:
    if not listed:
        return
    out = console()
    out.print()
    goals = tuple(row.header.objectives)
    scores = goals or ("VALUE",)
    used = {one.number: in_words(read_usage(folder.trial(one.number).usage)) for one in listed}
    more = ("USED",) if any(used.values()) else ()
    grid = table(
        *("TRIAL", "STATE", *scores, "LAST", "STEP", "TIME", *more, "PARAMETERS"),
        right=(*scores, "LAST", "STEP"),
        optional=(*more, "TIME", "LAST", "STEP"),
    )
    for one in listed:
        is_best = one.number == row.best_trial
        grid.add_row(
            cell(f"{one.number:04d}", "bold" if is_best else ""),
            state_cell(one.state),
            *(cell(number(one.metrics.get(goal))) for goal in goals),
            *([] if goals else [cell(_score(one), "bold" if is_best else "")]),
            cell(number(one.last_value)),
            cell("–" if one.last_step is None else one.last_step),
            cell(duration(one.duration_s)),
            *(cell(used[one.number] or "–") for _ in more),
            cell(parameters(one.params)),
        )
    print_table(grid)
    for one in listed:
        if one.extras:
            out.print(cell(f"{one.number:04d} also returned {parameters(one.extras)}"))
    if row.trials > len(listed):
        out.print(f"{row.trials - len(listed)} more; --all shows all.", style="dim")


def _score(one: TrialRow) -> str:
    """Return a trial's value; with repeats also how far they differ, and how many of them failed."""
    repeated = one.info.get("repeated")
    if not isinstance(repeated, dict):
        return number(one.value)
    spread = repeated.get("spread")
    words = number(one.value) + (f" ± {number(spread)}" if spread is not None else "")
    failures = repeated.get("failures") or 0
    return f"{words} ({failures} failed)" if failures else words


def _print_failure(row: ExperimentRow, first: TrialRow) -> None:
    out, failed = console(), row.counts[TrialState.FAILED]
    what = "The only failure" if failed == 1 else f"The first of {failed} failures"
    out.print()
    out.print(cell(f"{what}: trial {first.number:04d}, {parameters(first.params)}", "red"))
    out.print(neutralized(first.error or "(it left no error message)").rstrip())
    out.print(f"Its output: cargobike logs {row.id} --trial {first.number}", style="dim")
