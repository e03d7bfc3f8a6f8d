"""Run a command on the machine that has the project: what `cargobike --server ADDRESS …` does."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TextIO

import typer

from cargobike.cli.asking import confirm
from cargobike.cli.terminal import neutralized
from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.remote.answers import CallOpened, CommandState, FrameAnswer
from cargobike.remote.asking.connection import Connection
from cargobike.remote.calling.files import Sending, bring, find_file, send
from cargobike.remote.commands.parsing import Parsed, parse
from cargobike.remote.commands.rules import MADE, SENT, declaration, needed
from cargobike.remote.project import connect

_WAIT_S: Final = 10.0
_INTERRUPTED: Final = 130


class Outgoing(NamedTuple):
    """A command as it is sent: its words, the files that go with it, and where what comes back belongs."""

    arguments: list[str]
    sendings: list[Sending]
    targets: dict[str, Path]


def is_only_here(arguments: Sequence[str]) -> bool:
    """Tell whether a command makes sense only where it is called."""
    try:
        declaration(parse(arguments))
    except CargobikeError:
        return True
    return False


def call(arguments: Sequence[str], server: str = "", also: Sequence[str] = ()) -> int:
    """Run a command where the project is, print what it prints, and return its exit code.

    Ctrl-C interrupts the command there and waits for its end; a second one leaves it to the server, which interrupts
    what is not read any more.

    Args:
        arguments: The command line, without what all commands share.
        server: Its address; by default the environment's.
        also: Files and folders that are sent besides those that the arguments name.

    Raises:
        CargobikeError: If the command cannot be run from afar, or the server refuses it.
    """
    parsed = _confirmed(parse(arguments))
    outgoing = prepare(parsed, also)
    connection = connect(server).connection
    opened = ""
    if outgoing.sendings:
        opened = connection.post(["commands", "calls"], CallOpened).id
        send(connection, opened, outgoing.sendings)
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    body = {"arguments": outgoing.arguments, "call": opened, "columns": columns}
    state = connection.post(["commands"], CommandState, body)
    ended = follow(connection, state, _print)
    for path in bring(connection, ended.id, ended.files, outgoing.targets):
        typer.echo(f"Brought {path}.", err=True)
    return _INTERRUPTED if ended.is_cancelled else ended.exit_code or 0


def prepare(parsed: Parsed, also: Sequence[str] = ()) -> Outgoing:
    """Replace paths of this machine in a command line by those that they have beside the command there.

    Raises:
        InvalidInputError: If the command makes sense only here, or two files would have the same name there.
    """
    afar = declaration(parsed)
    sendings: dict[str, Path] = {}
    targets: dict[str, Path] = {}

    def added(path: Path) -> str:
        name = path.resolve().name
        if sendings.setdefault(name, path.resolve()) != path.resolve():
            raise InvalidInputError(f"Two files called {name!r} cannot be sent with one command; rename one.")
        return name

    def change(parameter: str, text: str) -> str:
        if parameter in afar.sends and (found := find_file(text)):
            return f"{SENT}/{added(found[0])}{found[1]}"
        if parameter in afar.brings and text != "-":
            path = Path(text).expanduser()
            if targets.setdefault(path.name, path) != path:
                raise InvalidInputError(f"Two files called {path.name!r} cannot be brought back; rename one.")
            return f"{MADE}/{path.name}"
        return text

    arguments = parsed.rewritten(change)
    for text in also:
        found = find_file(text)
        if found is None:
            raise InvalidInputError(f"There is no file {text!r} here that could be sent along.")
        added(found[0])
    return Outgoing(arguments, [Sending(path, name) for name, path in sendings.items()], targets)


def follow(connection: Connection, state: CommandState, show: Callable[[FrameAnswer], None]) -> CommandState:
    """Show what a command prints until it has ended; returns its last state."""
    name, interrupts = state.id, 0
    while True:
        try:
            for frame in state.frames:
                show(frame)
            if state.exit_code is not None:
                return state
            query = {"after": state.next, "wait_s": _WAIT_S}
            state = connection.get(["commands", name], CommandState, **query)
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts > 1:
                raise
            connection.post(["commands", name, "cancel"], CommandState)
            state.frames = []
            typer.echo("Interrupting the command on the server; Ctrl-C again leaves it alone.", err=True)


def _confirmed(parsed: Parsed) -> Parsed:
    """Ask here what the command would ask there, where there is no person."""
    asks = any(parameter.name == "yes" for parameter in parsed.command.params)
    if not asks or "yes" in parsed.values or "help" in parsed.values:
        return parsed
    if needed(parsed, declaration(parsed)) == "read":
        return parsed  # with these parameters it only looks, and asks nothing
    line = " ".join(parsed.rewritten(lambda _, text: text))
    confirm(f"Run `cargobike {neutralized(line)}` on the server?", yes=False, as_json="as_json" in parsed.values)
    return parse([*parsed.words, "--yes", *parsed.rewritten(lambda _, text: text)[len(parsed.words) :]])


def _print(frame: FrameAnswer) -> None:
    stream: TextIO = sys.stdout if frame.stream == "out" else sys.stderr
    # At a terminal, what comes from another machine may be coloured, and nothing else.
    stream.write(neutralized(frame.text, keep_colours=True) if stream.isatty() else frame.text)
    stream.flush()
