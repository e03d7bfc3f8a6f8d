"""Commands of the command line, run where a project elsewhere is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from cargobike.core.errors import ServerRefusedError, WaitError
from cargobike.remote.answers import CommandRules, CommandState
from cargobike.remote.asking.connection import Connection
from cargobike.remote.rooms.room import Room

_WAIT_S = 10.0


class Finished(NamedTuple):
    """A command that has ended.

    Attributes:
        exit_code: 0 if all went well.
        out: What it printed.
        err: What it said besides, for people.
    """

    exit_code: int
    out: str
    err: str

    def json(self) -> object:
        """Return what it printed, read as JSON.

        Raises:
            ServerRefusedError: If it failed, or printed no JSON.
        """
        if self.exit_code:
            raise ServerRefusedError(self.err.strip() or f"The command ended with exit code {self.exit_code}.")
        try:
            return msgspec.json.decode(self.out)
        except msgspec.MsgspecError as error:
            raise ServerRefusedError(f"The command printed no JSON ({error}); give it --json.") from error


class Commands(Room):
    """Everything that the command line can do, by its own words; what a token may do is decided for each command."""

    def rules(self) -> CommandRules:
        """Return which commands run from afar, and the role that each needs."""
        return self._connection.get(["command-rules"], CommandRules)

    def run(self, arguments: Sequence[str], *, timeout_s: float = 600.0) -> Finished:
        """Run a command where the project is, and return what it printed; it is interrupted when the time is up.

        Args:
            arguments: The command line: `["models", "promote", "digits:3", "champion", "--json"]`.
            timeout_s: How long it may take.

        Raises:
            WaitError: If it takes longer.
            ForbiddenError: If the role of the token does not allow it.
        """
        state = self._connection.post(["commands"], CommandState, {"arguments": list(arguments)})
        return finished(self._connection, state, " ".join(arguments)[:100], timeout_s)


def asked(connection: Connection, path: Sequence[str | int], body: Mapping[str, object], timeout_s: float) -> None:
    """Ask for something that a command of the server does, and wait until it is done.

    Raises:
        WaitError: If it takes longer; it was interrupted.
        ServerRefusedError: If it failed; says why.
    """
    given = {name: value for name, value in body.items() if value not in (None, "", [], ())}
    state = connection.post(path, CommandState, given)
    done = finished(connection, state, "/".join(map(str, path)), timeout_s)
    if done.exit_code:
        raise ServerRefusedError(done.err.strip() or f"The command ended with exit code {done.exit_code}.")


def finished(connection: Connection, state: CommandState, words: str, timeout_s: float) -> Finished:
    """Wait until a command has ended, and return what it printed; it is interrupted when the time is up.

    Raises:
        WaitError: If it takes longer.
    """
    give_up_at, printed = time.monotonic() + timeout_s, {"out": "", "err": ""}
    while True:
        for frame in state.frames:
            printed[frame.stream] += frame.text
        if state.exit_code is not None:
            return Finished(state.exit_code, printed["out"], printed["err"])
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:
            connection.post(["commands", state.id, "cancel"], CommandState)
            raise WaitError(f"`cargobike {words}` has not ended after {timeout_s:g} s and was interrupted.")
        query = {"after": state.next, "wait_s": min(_WAIT_S, left_s)}
        state = connection.get(["commands", state.id], CommandState, **query)
