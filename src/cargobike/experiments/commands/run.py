"""`cargobike run`."""

from __future__ import annotations

import contextlib
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cargobike.cli.parameters import read_parameters
from cargobike.cli.printing import parameters, print_json
from cargobike.cli.terminal import neutralized
from cargobike.core.errors import ExperimentFailedError, SignatureError
from cargobike.core.records import ExperimentState
from cargobike.core.values.words import number
from cargobike.experiments import front as experiment
from cargobike.experiments.commands.naming_parts import complete_engine, complete_function, complete_optimizer
from cargobike.experiments.commands.opening import synced_index
from cargobike.experiments.commands.printing import experiment_as_json
from cargobike.experiments.results.result import Result


class Way(StrEnum):
    """Which way is better."""

    MAX = "max"
    MIN = "min"


def run(
    function: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:FUNCTION",
            help="What to run; also a notebook, also by its URL. With --as-is a whole script or notebook.",
            autocompletion=complete_function,
        ),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="With --as-is: what the script is given.")
    ] = None,
    *,
    as_is: Annotated[
        bool,
        typer.Option("--as-is", help="Run a script for an older library: `import hops`, `import maggy` … find ours."),
    ] = False,
    space: Annotated[Path | None, typer.Option(metavar="FILE", help="Search space, as YAML or JSON.")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Parameter of a single run; may be repeated."),
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="How to search.", autocompletion=complete_optimizer)] = None,
    num_trials: Annotated[int | None, typer.Option(min=1, help="How many trials.")] = None,
    timeout_s: Annotated[str | None, typer.Option("--timeout", help="When to end: seconds, or such as 1h30m.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="How many at once; 0 runs all in this process. [default: one per core]"),
    ] = None,
    gang: Annotated[int, typer.Option(min=1, help="How many workers run each trial together, as ranks.")] = 1,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Where workers live: local, spark, or a Spark master's address.",
            autocompletion=complete_engine,
        ),
    ] = "local",
    repeats: Annotated[int, typer.Option(min=1, help="How often each trial is run, with another seed each time.")] = 1,
    direction: Annotated[Way | None, typer.Option(help="Which way is better.")] = None,
    metric: Annotated[str | None, typer.Option(help="Which of the returned numbers to optimize.")] = None,
    name: Annotated[str, typer.Option(help="A name for people.")] = "",
    description: Annotated[str, typer.Option(help="A sentence for people.")] = "",
    seed: Annotated[int | None, typer.Option(help="Makes the search repeatable.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")] = False,
) -> None:
    """Search a function in a Python file, or run it once: with parameters, or as it is."""
    if as_is:
        os.execv(sys.executable, [sys.executable, "-m", "cargobike.compat", function, *(arguments or ())])
    if arguments:
        raise typer.BadParameter(f"{arguments[0]!r} is too much: only a script that runs --as-is is given arguments")
    if space is not None and param is not None:
        raise typer.BadParameter("give either --space FILE to search, or --param NAME=VALUE to run once, not both")
    subject: dict[str, Any] = {"params": read_parameters(param or [])} if space is None else {"space": space}
    try:
        # What the user's file prints while it is imported must not end up in the middle of the JSON.
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            result = experiment.launch(
                function,
                optimizer=optimizer,
                num_trials=num_trials,
                repeats=repeats,
                timeout_s=timeout_s,
                workers=workers,
                gang=gang,
                engine=engine,
                direction=direction.value if direction else None,
                metric=metric,
                name=name,
                description=description,
                seed=seed,
                quiet=quiet or as_json,
                **subject,
            )
    except SignatureError as error:
        if space is None and param is None:
            raise SignatureError(f"{error}\nGive --space FILE to search, or --param NAME=VALUE to run once.") from error
        raise
    except ExperimentFailedError as error:
        print_failed(error, as_json=as_json)
        raise
    tell(result, as_json=as_json)


def print_failed(error: ExperimentFailedError, *, as_json: bool) -> None:
    """Print what is known of an experiment that was given up, for programs; people read the error."""
    if as_json and isinstance(error.result, Result):
        _print_json(error.result.id)


def tell(result: Result, *, as_json: bool) -> None:
    """Print the result, for people or programs; the exit code is 1 if the experiment was not completed."""
    if as_json:
        _print_json(result.id)
    else:
        print_outcome(result)
    if result.state is not ExperimentState.COMPLETED:
        raise typer.Exit(1)


def print_outcome(result: Result) -> None:
    """Print the result, and where to look next."""
    if result.best is not None:
        params = f" with {parameters(result.best.params)}" if result.best.params else ""
        best = f"Best: {number(result.best.value)}{params}"
        typer.secho(neutralized(best), fg="green", bold=True)
    elif result.state is ExperimentState.COMPLETED and len(result.trials) == 1:
        typer.secho("It ran to its end and returned no number.", fg="green")
    else:
        why = f" ({result.reason})" if result.reason else ""
        message = f"No trial completed with a number; the experiment is {result.state.value}{why}."
        typer.secho(neutralized(message), fg="yellow")
    typer.echo(f"More: cargobike show {result.id}")


def _print_json(experiment_id: str) -> None:
    with synced_index() as index:
        print_json(experiment_as_json(index.experiment(experiment_id)))
