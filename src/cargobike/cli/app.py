"""The `cargobike` command: options that all commands share, and a place for the commands that products register."""

from __future__ import annotations

import io
import keyword
import logging
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cargobike.cli.completing import answered_shell
from cargobike.cli.terminal import neutralized
from cargobike.core import settings
from cargobike.core.errors import CargobikeError, NotFoundError, nearest
from cargobike.core.registering.lazy import in_words, load
from cargobike.core.registering.products import Command, commands, own_products, products
from cargobike.core.version import version_line
from cargobike.store.files import project as project_door

_log = logging.getLogger(__name__)

_CALL = "cargobike.remote.calling.running:call"
_IS_ONLY_HERE = "cargobike.remote.calling.running:is_only_here"
_VALIDATOR = "Value error, "  # how Typer's library for checking values begins what is a sentence without it


class CommandGroup(TyperGroup):
    """Loads the module of a command only when the command is called, so that help and errors come at once."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which the help lists them."""
        return list(commands(products()))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command with its name and its help only, enough for a list."""
        command = find_command(cmd_name)
        return None if command is None else TyperCommand(cmd_name, help=command.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is to be called, loaded; the nearest one is named if there is none."""
        if not ctx.resilient_parsing and not args[0].startswith("-") and find_command(args[0]) is None:
            hint = nearest(args[0], commands(products()))
            ctx.fail(f"There is no command {args[0]!r}.{hint} `cargobike --help` lists them all.")
        if not ctx.resilient_parsing and (server := _server_of(ctx, args)):
            raise typer.Exit(load(_CALL)(args, server, ctx.params.get("send") or ()))
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; our own errors are sentences for people, not tracebacks."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(_VALIDATOR)
            raise
        except CargobikeError as error:
            _log.debug("The command failed", exc_info=True)
            typer.secho(neutralized(str(error)), fg="red", err=True)
            raise typer.Exit(1) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            _log.debug("The command failed", exc_info=True)
            what = f"{error.strerror}: {os.fsdecode(error.filename)}" if error.filename else str(error)
            typer.secho(neutralized(f"{what}. (-vv shows where.)"), fg="red", err=True)
            raise typer.Exit(1) from error


def _server_of(ctx: Any, args: list[str]) -> str:
    """Return the server that a command is to run on, empty for this machine."""
    given: str = ctx.params.get("server") or ""
    if given and ctx.params.get("project"):
        ctx.fail("--server and --project exclude each other: the server has its own project.")
    if ctx.params.get("send") and not given and not settings.server():
        ctx.fail("--send goes with --server: it names files that are sent there.")
    if given or ctx.params.get("project") or {"-h", "--help"} & set(args):
        return given if not {"-h", "--help"} & set(args) else ""
    server = settings.server()
    return server if server and not load(_IS_ONLY_HERE)(args) else ""


def find_command(name: str) -> Command | None:
    """Return what is registered for a command; other packages are searched only for commands that are not ours."""
    return commands(own_products()).get(name) or commands(products()).get(name)


def load_command(name: str) -> Any:
    """Import the module of a command and make the command from its function, or from its group of commands."""
    command = find_command(name)
    if command is None:
        raise NotFoundError(f"There is no command {name!r}.", wanted=name)
    try:
        entry = load(f"{command.module}:{f'{name}_' if keyword.iskeyword(name) else name}")
    except ModuleNotFoundError as error:
        extra = next((product.extra for product in products() if command in product.commands), "")
        raise in_words(error, f"`cargobike {name}`", extra) from error
    if not isinstance(entry, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(entry)
        entry = single
    loaded = typer.main.get_command(entry)
    loaded.name, loaded.help = name, command.help
    return loaded


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Carry one plain Python function from a laptop to a cluster: search it, distribute it, remember it.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def _shared(
    *,
    verbose: Annotated[int, typer.Option("-v", "--verbose", count=True, help="Say more; twice for everything.")] = 0,
    project: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|URL", help=f"Project to use. [default: ${settings.PROJECT}, or .cargobike here or above]"
        ),
    ] = "",
    server: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help=f"Run the command where the project is: https://tower:8520. [default: ${settings.SERVER}, or here]",
        ),
    ] = "",
    send: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="With --server: send this file or folder along; may be repeated."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    # Which module says something matters only to people who look for the cause of a problem.
    form = "%(levelname)s %(name)s: %(message)s" if verbose else "%(levelname)s: %(message)s"
    logging.basicConfig(level=level, format=form, stream=sys.stderr)
    if project:
        project_door.use(project)


def main() -> None:
    """Run the command line and exit: 0 if all went well, 1 if it did not, 2 if it was called wrongly."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path, or what a function printed, may be no text
    with answered_shell():
        app(prog_name="cargobike")
