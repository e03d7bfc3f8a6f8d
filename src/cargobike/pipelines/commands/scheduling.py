"""`cargobike pipelines schedule` and `cargobike pipelines schedules`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.completing import fitting_in_project
from cargobike.cli.parameters import read_parameters
from cargobike.cli.printing import cell, console, moment, print_json, print_table, table, utc
from cargobike.cli.terminal import neutralized
from cargobike.core.registering.lazy import load
from cargobike.core.registering.triggers import Trigger
from cargobike.core.values.words import MISSING
from cargobike.experiments.commands.naming_parts import complete_function
from cargobike.pipelines.commands.naming import Json
from cargobike.pipelines.scheduling import front
from cargobike.pipelines.scheduling.front import Schedule
from cargobike.pipelines.scheduling.policy.state import Firing

_DOORS: Final = {
    "changed": "cargobike.features:changed",
    "arrived": "cargobike.data:arrived",
    "drifted": "cargobike.monitoring:drifted",
}

schedules = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, lambda: ((one.name, one.words) for one in front.schedules()), incomplete)


Name = Annotated[str, typer.Argument(metavar="NAME", help="A schedule.", autocompletion=_complete)]


def schedule(
    function: Annotated[
        str, typer.Argument(metavar="FILE.py:FUNCTION", help="The pipeline.", autocompletion=complete_function)
    ],
    *,
    every: Annotated[str | None, typer.Option(metavar="TIME", help="From one run to the next, such as 1d.")] = None,
    cron: Annotated[str | None, typer.Option(metavar="EXPRESSION", help="Such as '0 3 * * *'.")] = None,
    when: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND:WHAT", help="changed:GROUP, arrived:PLACE or drifted:DEPLOYMENT; may be repeated."),
    ] = None,
    overlap: Annotated[
        str | None, typer.Option(help="If a run is still at work: skip, queue or cancel. [default: skip]")
    ] = None,
    catch_up: Annotated[
        str | None, typer.Option(help="Times that were missed: none, last or all. [default: last]")
    ] = None,
    timezone: Annotated[str, typer.Option(help="The zone whose clocks --cron means.")] = "UTC",
    name: Annotated[str, typer.Option(help="What to call it. [default: the function's name]")] = "",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a pipeline again and again: by the clock, or when something happened."""
    made = front.schedule(
        function,
        every=every,
        cron=cron,
        when=[_trigger(text) for text in when or []],
        overlap=overlap,
        catch_up=catch_up,
        timezone=timezone,
        name=name,
        **read_parameters(set_ or [], "--set"),
    )
    if as_json:
        print_json(as_plain(made))
        return
    typer.echo(neutralized(f"{made.name} is scheduled: {made.words}. {_next(made)}"))
    typer.echo("`cargobike scheduler` runs it; `cargobike scheduler status` says whether one is at work.")


@schedules.callback()
def listed(ctx: typer.Context, as_json: Json = False) -> None:
    """List schedules, look at one, pause, resume and delete them."""
    if ctx.invoked_subcommand is None:
        ls(as_json)


@schedules.command("ls")
def ls(as_json: Json = False) -> None:
    """List the schedules of the project."""
    found = front.schedules()
    if as_json:
        print_json([as_plain(one) for one in found])
        return
    if not found:
        console().print("There are no schedules in this project; `cargobike pipelines schedule` makes one.")
        return
    made = table("SCHEDULE", "SET OFF", "STATE", "NEXT", "LAST")
    for one in found:
        last = one.firings[-1] if one.firings else None
        made.add_row(
            cell(one.name, "bold"),
            cell(one.words),
            cell(_state(one)),
            cell(one.next_time.strftime("%Y-%m-%d %H:%M:%S %Z") if one.next_time else MISSING),
            cell(f"{last.run or MISSING} {last.outcome or 'at work'}" if last else MISSING),
        )
    print_table(made)


@schedules.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Show one schedule: what sets it off, when next, and what became of its last runs."""
    one = front.find_schedule(name)
    if as_json:
        print_json(as_plain(one))
        return
    plan = one.state.plan
    typer.echo(neutralized(f"{one.name}: {_state(one)}; {one.words}"))
    typer.echo(neutralized(f"runs {plan.target}{_arguments(plan.arguments)}"))
    typer.echo(f"overlap: {plan.overlap}, catch up: {plan.catch_up}")
    typer.echo(_next(one))
    if not one.firings:
        return
    made = table("RUN", "SET OFF BY", "AT", "OUTCOME")
    for firing in one.firings:
        words = f"{firing.outcome}: {firing.note}" if firing.note else firing.outcome
        made.add_row(
            cell(firing.run or MISSING), cell(_cause(firing)), cell(moment(firing.at)), cell(words or "at work")
        )
    print_table(made)


@schedules.command("pause")
def pause(name: Name) -> None:
    """Let nothing set a schedule off until `resume`; a run that is at work goes on."""
    front.find_schedule(name).pause()
    typer.echo(f"{name} is paused.")


@schedules.command("resume")
def resume(name: Name) -> None:
    """Go on with a schedule that was paused; what came in between does not count."""
    typer.echo(neutralized(f"{name} goes on. {_next(front.find_schedule(name).resume())}"))


@schedules.command("rm")
def rm(name: Name, yes: Yes = False) -> None:
    """Delete a schedule; its runs are kept, and one that is at work goes on."""
    one = front.find_schedule(name)
    confirm(f"Delete the schedule {name} ({one.words})?", yes=yes)
    one.remove()
    typer.echo(f"{name} is gone.")


def as_plain(one: Schedule) -> dict[str, Any]:
    """Return the documented keys of a schedule, for programs."""
    plan, at = one.state.plan, one.next_time
    return {
        "name": one.name,
        "state": _state(one),
        "function": str(plan.target),
        "arguments": plan.arguments,
        "every_s": plan.every_s or None,
        "cron": plan.cron or None,
        "timezone": plan.timezone,
        "when": [{"kind": each.kind, "subject": each.subject, "options": each.options} for each in plan.when],
        "overlap": plan.overlap,
        "catch_up": plan.catch_up,
        "next": None if at is None else {"local": at.isoformat(), "utc": utc(at.timestamp())},
        "firings": [_firing_as_plain(firing) for firing in one.firings],
    }


def _firing_as_plain(firing: Firing) -> dict[str, Any]:
    return {
        "run": firing.run or None,
        "at": utc(firing.at),
        "due": None if firing.due is None else utc(firing.due),
        "cause": {name: value for name, value in firing.cause.items() if name != "trigger"},
        "outcome": firing.outcome or None,
        "ended": None if firing.ended is None else utc(firing.ended),
        "note": firing.note,
        "count": firing.count,
    }


def _trigger(text: str) -> Trigger:
    kind, separator, subject = text.partition(":")
    if not separator or not kind or not subject:
        raise typer.BadParameter(
            f"{text!r} is not KIND:WHAT, such as changed:teams or arrived:s3://bucket/in/*.parquet", param_hint="--when"
        )
    if kind not in _DOORS:
        return Trigger(kind, subject)
    made: Trigger = load(_DOORS[kind])(subject)
    return made


def _state(one: Schedule) -> str:
    if one.state.active:
        return "running" if not one.is_paused else "running, paused"
    return "paused" if one.is_paused else "waiting"


def _next(one: Schedule) -> str:
    at = one.next_time
    if at is None:
        return "Paused." if one.is_paused else "Next: when something happens."
    return f"Next: {at:%Y-%m-%d %H:%M:%S %Z} ({utc(at.timestamp())})."


def _cause(firing: Firing) -> str:
    if firing.outcome == "missed":
        return "the clock"
    return "the clock" if firing.due is not None else f"{firing.cause.get('subject')} {firing.cause.get('kind')}"


def _arguments(arguments: dict[str, Any]) -> str:
    return f" with {', '.join(f'{name}={value!r}' for name, value in arguments.items())}" if arguments else ""
