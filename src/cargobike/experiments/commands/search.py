"""`cargobike search`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.core.errors import ExperimentFailedError
from cargobike.experiments import front as experiment
from cargobike.experiments.commands.run import Way, print_failed, tell
from cargobike.experiments.commands.short_space import read_spaces


def search(
    command: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM …", help="What to run: python train.py --lr {lr}")
    ],
    *,
    space: Annotated[str | None, typer.Option(metavar="FILE", help="Search space, as YAML or JSON.")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUES", help="'lr=1e-4..1e-1 log', layers=1..5, act=relu,gelu; may be repeated."),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Which of the numbers to optimize.")] = None,
    file: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the program writes its score: {folder}/score.json")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Finds the score in what it prints: 'acc=(?P<acc>\\S+)'")
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Finds reports: 'epoch (?P<step>\\d+) loss (?P<loss>\\S+)'")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=TEXT", help="Environment variable: LR={lr}; may be repeated.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="How to search.")] = None,
    early_stop: Annotated[list[str] | None, typer.Option(help="A rule that ends bad trials early.")] = None,
    num_trials: Annotated[int | None, typer.Option(min=1, help="How many trials.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each trial is run, with another seed each time.")] = 1,
    timeout_s: Annotated[str | None, typer.Option("--timeout", help="When to end: seconds, or such as 1h30m.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="How many at once; 0 runs all in this process. [default: one per core]"),
    ] = None,
    gang: Annotated[int, typer.Option(min=1, help="How many workers run each trial together, as ranks.")] = 1,
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help="Where workers live: local, spark, or a Spark master's address.")
    ] = "local",
    direction: Annotated[Way | None, typer.Option(help="Which way is better.")] = None,
    name: Annotated[str, typer.Option(help="A name for people.")] = "",
    description: Annotated[str, typer.Option(help="A sentence for people.")] = "",
    seed: Annotated[int | None, typer.Option(help="Makes the search repeatable.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")] = False,
) -> None:
    """Search the parameters of a program: each trial runs it with its placeholders filled in.

    Its score is the last line that it prints, unless --file, --pattern or --report says otherwise.
    """
    program = experiment.command(
        command,
        metric=metric or "value",
        file=file,
        pattern=pattern,
        report=report,
        env=dict(_pair(text) for text in env or []),
    )
    try:
        result = experiment.launch(
            program,
            read_spaces(space, param or []),
            optimizer=optimizer,
            early_stop=early_stop or None,
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
        )
    except ExperimentFailedError as error:
        print_failed(error, as_json=as_json)
        raise
    tell(result, as_json=as_json)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=TEXT, such as LR={{lr}}", param_hint="--env")
    return name, value
