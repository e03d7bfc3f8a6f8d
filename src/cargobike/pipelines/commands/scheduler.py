"""`cargobike scheduler`."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from typing import Annotated

import typer

from cargobike.cli.printing import print_json, utc
from cargobike.cli.terminal import neutralized
from cargobike.core.values.times import read_seconds
from cargobike.pipelines.commands.naming import Json
from cargobike.pipelines.scheduling.process.background import At, end_scheduler, scheduler_at, start_scheduler
from cargobike.pipelines.scheduling.process.serving import serve
from cargobike.store.files import project
from cargobike.store.files.shared import shared_url

scheduler = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)

LookEvery = Annotated[str, typer.Option("--look-every", metavar="TIME", help="From one look at a trigger to the next.")]
MostRuns = Annotated[int, typer.Option("--most-runs", min=0, help="Runs at once. [default: four per processor]")]


@scheduler.callback()
def run(
    ctx: typer.Context,
    *,
    detach: Annotated[bool, typer.Option("--detach", help="Go on in the background.")] = False,
    look_every: LookEvery = "10s",
    most_runs: MostRuns = 0,
) -> None:
    """Run what is scheduled, until Ctrl-C; runs that are at work go on.

    Several may be started, on any hosts: one is at work, the others wait to take over.
    """
    if ctx.invoked_subcommand is not None:
        return
    look_s = read_seconds("--look-every", look_every) or 10.0
    here = project.prepare()
    if not detach:
        typer.echo("Running what is scheduled; Ctrl-C ends the scheduler, and leaves runs alone.")
        serve(here, _say, look_s=look_s, most_runs=most_runs)
        return
    found = scheduler_at(here)
    if found is not None and found.is_alive:
        typer.echo(f"There is a scheduler already: {_words(found)}.")
        return
    at, log = start_scheduler(here, look_s=look_s, most_runs=most_runs)
    typer.echo(f"Started: {_words(at)}; it writes to {log}.")


@scheduler.command("status")
def status(as_json: Json = False) -> None:
    """Say whether a scheduler is at work; exit code 1 if none is."""
    found = scheduler_at(project.current())
    if as_json:
        print_json(None if found is None else _plain(found))
    elif found is None:
        typer.echo("There has been no scheduler in this project; `cargobike scheduler` starts one.")
    else:
        typer.echo(neutralized(f"{_words(found)}."))
    if found is None or not found.is_alive:
        raise typer.Exit(1)


@scheduler.command("stop")
def stop() -> None:
    """End the scheduler that is at work, if it is on this host; runs go on."""
    typer.echo(neutralized(end_scheduler(project.current())))


@scheduler.command("unit")
def unit() -> None:
    """Print a unit for systemd that keeps a scheduler at work."""
    here = project.current()
    place = shared_url(here) or str(here.root)
    command = [sys.executable, "-m", "cargobike.pipelines.scheduling", place]
    typer.echo(
        f"""\
# cargobike scheduler unit > ~/.config/systemd/user/cargobike.service && systemctl --user enable --now cargobike
[Unit]
Description=Runs what is scheduled in {here.root}

[Service]
ExecStart={shlex.join(command)}
WorkingDirectory={os.getcwd()}
Restart=always
# Runs outlive the scheduler.
KillMode=process

[Install]
WantedBy=default.target"""
    )


def _say(name: str, words: str) -> None:
    with contextlib.suppress(OSError):  # a terminal that is gone must not end the scheduler
        typer.echo(neutralized(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {name or 'scheduler'}  {words}"))


def _words(at: At) -> str:
    who = f"process {at.pid} on {at.host}"
    if at.is_alive:
        return f"{who} is at work since {utc(at.since)}"
    return f"none is at work; the last was {who}, until {utc(at.last)}"


def _plain(at: At) -> dict[str, object]:
    return {"is_alive": at.is_alive, "pid": at.pid, "host": at.host, "since": utc(at.since), "last": utc(at.last)}
