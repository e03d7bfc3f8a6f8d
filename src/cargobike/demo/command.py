"""`cargobike demo`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from cargobike import experiment
from cargobike.core.errors import InvalidInputError
from cargobike.experiments.commands.run import print_outcome
from cargobike.search.spaces.space import Searchspace

_NEEDED: Final = {"torch": "torch", "sklearn": "scikit-learn"}


def demo(
    num_trials: Annotated[int, typer.Option(min=1, help="How many trials.")] = 16,
    workers: Annotated[int | None, typer.Option(min=1, help="How many at once. [default: one per core]")] = None,
    seed: Annotated[int, typer.Option(help="Makes the search repeatable.")] = 7,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Search a small neural network, to see how it goes."""
    missing = [name for module, name in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise InvalidInputError(
            f'The demo trains a network and needs {" and ".join(missing)}: pip install "cargobike[demo]"'
        )
    typer.echo(f"Searching a network that reads handwritten digits: {num_trials} trials.")
    space = Searchspace(
        lr=("DOUBLE", [1e-4, 1e-1], "log"),
        hidden=("INTEGER", [8, 256], "log"),
        dropout=("DOUBLE", [0.0, 0.5]),
        activation=("CATEGORICAL", ["relu", "gelu"]),
    )
    result = experiment.launch(
        f"{Path(__file__).with_name('digits.py')}:train",
        space,
        num_trials=num_trials,
        workers=workers,
        direction="max",
        name="demo",
        description="A small network that reads scikit-learn's handwritten digits.",
        seed=seed,
        quiet=quiet,
    )
    print_outcome(result)
    typer.echo("Where to look next:")
    typer.echo("  cargobike ls               all experiments of this folder")
    typer.echo("  cargobike show last        this one: best parameters, trials, failures")
    typer.echo("  cargobike logs last        what its trials printed")
    typer.echo("  cargobike ui               all of that in a browser, with figures")
    typer.echo(f"  {Path(__file__).with_name('digits.py')}  the function that was searched")
