"""The `cargobike` command: options that all commands share, and where each command lives."""

from __future__ import annotations

import importlib
import keyword
import logging
import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from cargobike.cli.terminal import neutralized
from cargobike.core.errors import CargobikeError
from cargobike.store.files import project as project_door

COMMANDS: Final = {
    "demo": "Search a small neural network, to see how it goes.",
    "run": "Search a function in a Python file, or run it once.",
    "ls": "List experiments.",
    "show": "Show one experiment: its best parameters, its trials, its failures.",
    "compare": "Show what differs between two experiments: settings, code, environment, results.",
    "tag": "Add tags to an experiment, take some away, or list them.",
    "note": "Write something down about an experiment, or print what was written.",
    "logs": "Print what the trials of an experiment wrote.",
    "ui": "Show experiments in a browser, live.",
    "tensorboard": "Show experiments in TensorBoard until Ctrl-C.",
    "stop": "Ask a running experiment to stop, and wait until it has.",
    "resume": "Go on with an experiment that was lost or stopped, or add trials to it.",
    "reproduce": "Run the recorded code of an experiment again, and say whether it comes out the same.",
    "export": "Write an experiment into one file, or in MLflow's format.",
    "import": "Take an exported experiment into this project.",
    "rm": "Remove experiments and everything they wrote.",
    "bench": "Measure how fast this machine, or cluster, trains.",
    "doctor": "Look for problems with this machine and this project.",
    "version": "Print the version.",
}
"""Each command is what has its name in the module of its name, with a `_` where Python claims the word."""

_ELSEWHERE: Final = {
    "bench": "cargobike.bench.command",
    "demo": "cargobike.demo.command",
    "ui": "cargobike.cli.ui",
    "version": "cargobike.cli.version",
}
"""Where commands live that are not about experiments."""

_log = logging.getLogger(__name__)


class CommandGroup(TyperGroup):
    """Loads the module of a command only when the command is called, so that help and errors come at once."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command that knows its name and its help."""
        text = COMMANDS.get(cmd_name)
        return None if text is None else TyperCommand(cmd_name, help=text)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is to be called, loaded."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; our own errors are sentences for people, not tracebacks."""
        try:
            return super().invoke(ctx)
        except CargobikeError as error:
            _log.debug("The command failed", exc_info=True)
            typer.secho(neutralized(str(error)), fg="red", err=True)
            raise typer.Exit(1) from error


def load_command(name: str) -> Any:
    """Import the module of a command and make the command from its function, or from its group of commands."""
    word = f"{name}_" if keyword.iskeyword(name) else name
    made = getattr(importlib.import_module(_ELSEWHERE.get(name, f"cargobike.experiments.commands.{word}")), word)
    if not isinstance(made, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(made)
        made = single
    command = typer.main.get_command(made)
    command.name, command.help = name, COMMANDS[name]
    return command


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Carry one plain Python function from a laptop to a cluster: search it, distribute it, remember it.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _shared(
    verbose: Annotated[int, typer.Option("-v", "--verbose", count=True, help="Say more; twice for everything.")] = 0,
    project: Annotated[
        str,
        typer.Option(metavar="FOLDER|URL", help="Project to use. [default: $CARGOBIKE_PROJECT or .cargobike]"),
    ] = "",
) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    if project:
        project_door.use(project)


def main() -> None:
    """Run the command line and exit: 0 if all went well, 1 if it did not, 2 if it was called wrongly."""
    app()
