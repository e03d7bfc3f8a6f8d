"""Commands that tools are made of: run on a project here, or on a server, with a role in both cases."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cargobike.core.errors import CargobikeError, NotFoundError, ServerRefusedError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.afar import RoleName
from cargobike.remote.answers import CallOpened, CommandState
from cargobike.remote.calling.files import send
from cargobike.remote.calling.running import prepare
from cargobike.remote.commands.parsing import parse
from cargobike.remote.commands.process import CommandProcess
from cargobike.remote.commands.rules import allowed
from cargobike.remote.project import RemoteProject
from cargobike.remote.rooms.commands import Finished

_LOOK_S: Final = 0.03
_WAIT_S: Final = 5.0
_MOST_LAUNCHED: Final = 8
_MOST_KEPT: Final = 200_000
"""How much of what a command printed is kept while it runs: the end counts."""


class Launched(ABC):
    """A command that was started and goes on. What it prints is gathered in a thread, the end of it."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.exit_code: int | None = None
        self._printed = {"out": "", "err": ""}
        self._ended = threading.Event()
        threading.Thread(target=self._gather, name="mcp-launched", daemon=True).start()

    def wait(self, timeout_s: float, cancelled: threading.Event) -> Finished | None:
        """Return how it ended, `None` if it runs after a time, or as soon as the wait is cancelled."""
        give_up_at = time.monotonic() + timeout_s
        while not self._ended.wait(_LOOK_S):
            if cancelled.is_set() or time.monotonic() > give_up_at:
                return None
        return Finished(self.exit_code or 0, self._printed["out"], self._printed["err"])

    @property
    def printed(self) -> str:
        """The end of what it printed."""
        return self._printed["out"] + self._printed["err"]

    @abstractmethod
    def cancel(self) -> None:
        """Interrupt it, as Ctrl-C would."""

    @abstractmethod
    def _read(self, after: int) -> tuple[list[tuple[str, str]], int, int | None]:
        """Return what was printed since a number of frames, the next number, and the exit code if it has ended."""

    def _gather(self) -> None:
        after, code = 0, None
        try:
            while code is None:
                frames, after, code = self._read(after)
                for stream, text in frames:
                    self._printed[stream] = (self._printed[stream] + text)[-_MOST_KEPT:]
        except CargobikeError as error:
            self._printed["err"] += f"\n{error}"
            code = 1
        self.exit_code = code
        self._ended.set()


class Runner(ABC):
    """Where commands run. Closing interrupts all that were launched."""

    def __init__(self, role: RoleName) -> None:
        self.role = role
        self._launched: dict[str, Launched] = {}
        self._lock = threading.Lock()
        self._number = 0

    def run(self, arguments: Sequence[str], *, timeout_s: float, cancelled: threading.Event) -> Finished:
        """Run a command to its end.

        Raises:
            WaitError: If it takes longer, or is cancelled; it is interrupted then.
        """
        command = self.start(arguments)
        finished = command.wait(timeout_s, cancelled)
        if finished is None:
            command.cancel()
            raise WaitError(f"`cargobike {command.words}` has not ended after {timeout_s:g} s and was interrupted.")
        return finished

    def launch(self, arguments: Sequence[str]) -> tuple[str, Launched]:
        """Start a command that goes on, and return the name by which it is found again."""
        with self._lock:
            if sum(one.exit_code is None for one in self._launched.values()) >= _MOST_LAUNCHED:
                raise ServerRefusedError(f"{_MOST_LAUNCHED} commands run already; cancel one, or wait.")
            command = self.start(arguments)
            self._number += 1
            name = f"command-{self._number}"
            self._launched[name] = command
            return name, command

    def find(self, name: str) -> Launched:
        """Return a command that was launched."""
        if name not in self._launched:
            known = ", ".join(self._launched) or "none"
            raise NotFoundError(f"No command {name!r} was launched in this session; there is {known}.", wanted=name)
        return self._launched[name]

    def close(self) -> None:
        """Interrupt what was launched, and wait a little for its end."""
        running = [one for one in self._launched.values() if one.exit_code is None]
        for command in running:
            command.cancel()
        for command in running:
            command.wait(25.0, threading.Event())

    @abstractmethod
    def start(self, arguments: Sequence[str]) -> Launched:
        """Start a command, if the role allows it."""


class Here(Runner):
    """A project of this machine; commands run in the folder that the assistant was started in."""

    def __init__(self, project: ProjectFolder, role: RoleName) -> None:
        super().__init__(role)
        self._project = project

    def start(self, arguments: Sequence[str]) -> Launched:
        """Start a command of this machine: checked as on a server, with files where they are."""
        parsed = parse(arguments)
        outgoing = prepare(parsed)
        allowed(outgoing.arguments, self.role)
        words = parsed.rewritten(lambda _, text: text)
        return _OfProcess(CommandProcess(words, project=self._project.root, folder=Path.cwd()), parsed.name)


class There(Runner):
    """A project that a server has; files are sent to it."""

    def __init__(self, project: RemoteProject, role: RoleName) -> None:
        super().__init__(role)
        self._remote = project

    def start(self, arguments: Sequence[str]) -> Launched:
        """Start a command on the server: what the session may not do is not even asked for."""
        parsed = parse(arguments)
        outgoing = prepare(parsed)
        allowed(outgoing.arguments, self.role)
        connection, call = self._remote.connection, ""
        if outgoing.sendings:
            call = connection.post(["commands", "calls"], CallOpened).id
            send(connection, call, outgoing.sendings)
        body = {"arguments": outgoing.arguments, "call": call}
        return _OfServer(self._remote, connection.post(["commands"], CommandState, body).id, parsed.name)


class _OfProcess(Launched):
    def __init__(self, process: CommandProcess, words: str) -> None:
        self._process = process
        super().__init__(words)

    def cancel(self) -> None:
        self._process.cancel()

    def _read(self, after: int) -> tuple[list[tuple[str, str]], int, int | None]:
        code = self._process.exit_code
        frames, number = self._process.frames(after)
        if not frames and code is None:
            time.sleep(_LOOK_S)
        return [(frame.stream, frame.text) for frame in frames], number, code


class _OfServer(Launched):
    def __init__(self, remote: RemoteProject, call: str, words: str) -> None:
        self._remote, self._call = remote, call
        super().__init__(words)

    def cancel(self) -> None:
        self._remote.connection.post(["commands", self._call, "cancel"], CommandState)

    def _read(self, after: int) -> tuple[list[tuple[str, str]], int, int | None]:
        state = self._remote.connection.get(["commands", self._call], CommandState, after=after, wait_s=_WAIT_S)
        return [(frame.stream, frame.text) for frame in state.frames], state.next, state.exit_code
