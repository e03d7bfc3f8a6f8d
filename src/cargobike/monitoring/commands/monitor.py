"""`cargobike monitor`."""

from __future__ import annotations

import shlex
import threading
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.completing import fitting_in_project
from cargobike.cli.printing import cell, console, moment, print_json, print_table, table
from cargobike.core.values.words import MISSING, count
from cargobike.monitoring.comparing import compare as compare_versions
from cargobike.monitoring.facts import Hooks, WindowChoice
from cargobike.monitoring.front import list_monitors, watch
from cargobike.monitoring.front import monitor as find_monitor
from cargobike.monitoring.handle import Monitor, MonitorStatus
from cargobike.monitoring.running.process import watch_until

monitor = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_WINDOWS_SHOWN = 10
_ALARM = 3


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(
        ctx, lambda: ((one.name, one.status().watched.subject) for one in list_monitors()), incomplete
    )


Name = Annotated[str, typer.Argument(metavar="NAME", help="The monitor.", autocompletion=_complete)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@monitor.command("ls")
def ls(as_json: Json = False) -> None:
    """List the monitors of the project."""
    found = [one.status() for one in list_monitors()]
    if as_json:
        print_json([_plain(status) for status in found])
        return
    if not found:
        console().print("There are no monitors in this project; `cargobike monitor start DEPLOYMENT` makes one.")
        return
    made = table("MONITOR", "STATE", "WATCHES", "WINDOWS", "ROWS", "OPEN ALARMS", "LAST", right=("WINDOWS", "ROWS"))
    for status in found:
        made.add_row(
            cell(status.name, "bold"),
            cell("trouble" if status.trouble else status.state),
            cell(f"{status.watched.kind} {status.watched.subject}"),
            cell(status.windows),
            cell(status.rows),
            cell(", ".join(status.open_alarms) or MISSING, "bold red" if status.open_alarms else ""),
            cell(moment(status.seen_at)),
        )
    print_table(made)


@monitor.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Show one monitor: what it watches, its last windows, its alarms; exit code 3 if an alarm is open."""
    one = find_monitor(name)
    status, record = one.status(), one.record()
    if as_json:
        print_json(
            {
                **_plain(status),
                "alarms": [{"state": alarm.state, **_builtin(alarm)} for alarm in record.alarms],
                "last_windows": [_builtin(window) for window in record.windows[-_WINDOWS_SHOWN:]],
                "errors": [_builtin(error) for error in record.errors[-_WINDOWS_SHOWN:]],
                "compared": [_builtin(compared) for compared in record.compared],
            }
        )
    else:
        _print_one(status, one)
    if status.open_alarms:
        raise typer.Exit(_ALARM)


@monitor.command("report")
def report(
    name: Name,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The HTML file; by default NAME.html.")] = None,
    as_json: Json = False,
) -> None:
    """Write what happened over time as one HTML file."""
    path = find_monitor(name).report(output or Path(f"{name}.html"))
    if as_json:
        print_json({"report": str(path)})
    else:
        typer.echo(f"The report is in {path}.")


@monitor.command("ack")
def ack(
    name: Name,
    alarm: Annotated[str, typer.Argument(metavar="[ALARM]", help="Its id; all that are open if not given.")] = "",
    *,
    note: Annotated[str, typer.Option(help="What there is to say about it.")] = "",
    as_json: Json = False,
) -> None:
    """Acknowledge an alarm: say that you have seen it."""
    seen = find_monitor(name).acknowledge(alarm, note=note)
    if as_json:
        print_json({"acknowledged": seen})
    else:
        console().print(cell(f"Acknowledged: {', '.join(seen)}." if seen else f"{name} has no open alarm."))


@monitor.command("label")
def label(
    name: Name,
    labels: Annotated[str, typer.Argument(metavar="LABELS", help="A table with request_id and what is true.")],
    as_json: Json = False,
) -> None:
    """Bring labels that came late: a file, an address, or a table of the project."""
    number = find_monitor(name).label(labels)
    if as_json:
        print_json({"labels": number})
    else:
        typer.echo(f"Labels {number} are kept; the watcher joins them with what was predicted.")


@monitor.command("start")
def start(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A monitor, or a deployment to watch from now on.")],
    *,
    reference: Annotated[str, typer.Option(help="What is usual; by default what the model was trained on.")] = "",
    window: Annotated[str, typer.Option(help="How many rows, or how long: 1000, 1h.")] = "1000",
    alarm: Annotated[str, typer.Option(help="How many unusual windows of how many.")] = "3 of 5",
    false_alarms: Annotated[float, typer.Option(help="Which part of usual windows may be unusual.")] = 0.05,
    webhook: Annotated[str, typer.Option(help="An address that gets alarms as JSON.")] = "",
    email: Annotated[str, typer.Option(help="An address that gets a mail.")] = "",
    smtp: Annotated[str, typer.Option(help="The mail server, host:port.")] = "",
    command: Annotated[str, typer.Option(help="A program that gets alarms on its standard input.")] = "",
    foreground: Annotated[bool, typer.Option("--foreground", help="Watch in this process, until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Watch a deployment, or go on with a monitor that was stopped."""
    if any(one.name == name for one in list_monitors()) and not reference:
        made = find_monitor(name)
    else:
        hooks = Hooks(webhook=webhook, email=email, smtp=smtp, command=tuple(shlex.split(command)))
        made = watch(
            name, reference or None, window=window, alarm=alarm, false_alarms=false_alarms, hooks=hooks, start=False
        )
    if foreground:
        over = threading.Event()
        try:
            watch_until(over, made.folder)
        except KeyboardInterrupt:
            typer.echo("Stopped.")
        return
    made.start(detach=True)
    if as_json:
        print_json(_plain(made.status()))
    else:
        typer.echo(f"{name} is watched by {made.status().by}.")


@monitor.command("stop")
def stop(name: Name, as_json: Json = False) -> None:
    """End the process that watches; `cargobike monitor start` goes on where it was."""
    was_watched = find_monitor(name).stop()
    if as_json:
        print_json({"stopped": was_watched})
    else:
        typer.echo(f"{name} is not watched any more." if was_watched else f"{name} was not watched.")


@monitor.command("rm")
def rm(name: Name, *, yes: Yes = False, as_json: Json = False) -> None:
    """Delete a monitor with its windows, alarms and labels."""
    one = find_monitor(name)
    confirm(f"Delete {name} with {count(one.status().windows, 'window')} and all its alarms?", yes=yes, as_json=as_json)
    one.stop()
    one.remove()
    if as_json:
        print_json({"removed": name})
    else:
        typer.echo(f"{name} is deleted.")


@monitor.command("compare")
def compare(
    name: Name,
    champion: Annotated[str, typer.Argument(metavar="CHAMPION", help="The version that serves: digits@champion.")],
    challenger: Annotated[str, typer.Argument(metavar="CHALLENGER", help="The other one: digits:4.")],
    *,
    metric: Annotated[str, typer.Option(help="What is measured; by default the monitor's first.")] = "",
    rows: Annotated[int, typer.Option(min=10, help="How many of the newest labelled rows.")] = 1000,
    as_json: Json = False,
) -> None:
    """Compare two versions on the newest labelled requests; exit code 3 if the second is not better."""
    result = compare_versions(name, champion, challenger, metric=metric, rows=rows)
    if as_json:
        print_json(_builtin(result))
    else:
        word = "better than" if result.better else "not shown to be better than"
        typer.echo(
            f"{result.challenger} is {word} {result.champion}: {result.metric} {result.challenger_error:.4g}, not "
            f"{result.champion_error:.4g} on {result.rows} rows (difference {result.low:.4g} to {result.high:.4g})."
        )
    if not result.better:
        raise typer.Exit(_ALARM)


def _print_one(status: MonitorStatus, one: Monitor) -> None:
    watched, record = status.watched, one.record()
    console().print(cell(f"{status.name}: {status.state}", "bold"), cell(f"by {status.by}" if status.by else ""))
    console().print(
        cell(
            f"watches {watched.kind} {watched.subject}, windows of {_size(watched.window)}, against {watched.reference}"
        )
    )
    if watched.left_out:
        console().print(cell(f"not judged: {', '.join(watched.left_out)}", "dim"))
    if status.trouble:
        console().print(cell(f"trouble: {status.trouble}", "bold red"))
    made = table(
        "WINDOW", "FROM", "VERSION", "ROWS", "UNUSUAL", "CHANCE", "FEATURES", right=("WINDOW", "VERSION", "ROWS")
    )
    for window in record.windows[-_WINDOWS_SHOWN:]:
        made.add_row(
            cell(window.number),
            cell(moment(window.first_at)),
            cell(window.model_version),
            cell(window.rows),
            cell("not judged" if window.reason else "yes" if window.unusual else "no"),
            cell(f"{window.probability:.2%}"),
            cell(", ".join(moved.feature for moved in window.moved[:3])),
        )
    if record.windows:
        print_table(made)
    for alarm in record.alarms:
        style = "bold red" if alarm.state == "open" else ""
        console().print(
            cell(f"{alarm.id} {alarm.state}, since {moment(alarm.raised.since)}: {alarm.raised.text}", style)
        )
        if alarm.acknowledged:
            console().print(cell(f"  seen by {alarm.acknowledged.by}: {alarm.acknowledged.note or MISSING}", "dim"))
    for error in record.errors[-_WINDOWS_SHOWN:]:
        figures = ", ".join(f"{key} {value:.4g}" for key, value in error.metrics.items())
        words = figures or error.problem or "no predictions found"
        console().print(cell(f"{moment(error.at)}  {count(error.rows, 'label')}: {words}"))


def _size(window: WindowChoice) -> str:
    return f"{window.rows:,} rows" if window.rows else f"{window.seconds:g} s"


def _plain(status: MonitorStatus) -> dict[str, Any]:
    return _builtin(status)


def _builtin(record: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return plain
