"""A TensorBoard server that belongs to the process which started it, and ends with that process, however it ends."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from cargobike.core.errors import EngineError, WaitError
from cargobike.core.facts import Fact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.package import PACKAGE_PARENT

START_S = 120.0
END_S = 10.0

log = logging.getLogger(__name__)


class TensorboardOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the server process is to do: which folder to show, which experiments to follow, where to listen."""

    owner: int
    logdir: str
    experiments: list[str]
    host: str = "127.0.0.1"
    port: int = 0
    allow_hosts: list[str] = []


class TensorboardServer:
    """A TensorBoard server in a process of its own, which keeps the event files up to date as well.

    Its orders come through a pipe, and it ends when that is closed. Should the pipe not be enough, the kernel ends it
    with its owner.

    Args:
        logdir: The folder to show.
        folders: Experiments whose event files to write, and to keep up to date while they run.
        host: Address to listen on.
        port: Port to listen on, 0 for any that is free.
        allow_hosts: Names by which it may be asked for, besides those of this machine.
    """

    def __init__(
        self,
        logdir: Path,
        folders: Sequence[ExperimentFolder],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_hosts: Sequence[str] = (),
    ) -> None:
        order = TensorboardOrder(
            owner=os.getpid(),
            logdir=str(logdir),
            experiments=[str(one.root) for one in folders],
            host=host,
            port=port,
            allow_hosts=list(allow_hosts),
        )
        load = "from cargobike.experiments.tensorboard.process import main"
        program = f"import sys; sys.path.append({PACKAGE_PARENT!r}); {load}; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C goes to the owner, which ends it
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the server has ended."""
        return self._process.poll() is not None

    def address(self, timeout_s: float = START_S) -> str:
        """Wait until the server answers, and return its address.

        Raises:
            EngineError: If it cannot start; the message says why.
            WaitError: If it takes too long.
        """
        assert self._process.stdout is not None
        give_up_at = time.monotonic() + timeout_s
        data = b""
        while not data.endswith(b"\n"):
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                raise WaitError(f"TensorBoard (process {self.pid}) has not started within {timeout_s:g} s.")
            if select.select([self._process.stdout], [], [], left_s)[0]:
                chunk = os.read(self._process.stdout.fileno(), 4096)
                if not chunk:
                    break
                data += chunk
        word, _, text = data.decode(errors="replace").strip().partition(" ")
        if word != "at":
            raise EngineError(f"TensorBoard cannot be started: {text or 'its process ended without a message'}")
        return text

    def wait(self) -> int:
        """Wait for the server's end."""
        return self._process.wait()

    def close(self) -> None:
        """End the server; may be called twice."""
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> TensorboardServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TensorboardKeeper:
    """Starts a server once the first trial is on its way, and says where it is as soon as it answers.

    Args:
        folder: The experiment to show.
        say: Called, from a thread, with the address or with what went wrong.
    """

    def __init__(self, folder: ExperimentFolder, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._board: TensorboardServer | None = None

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Start the server at the first facts after the start of the experiment."""
        if self._board is None:
            self._folder.tensorboard.mkdir(exist_ok=True)
            self._board = TensorboardServer(self._folder.tensorboard, [self._folder])
            threading.Thread(target=self._announce, name="cargobike-tensorboard", daemon=True).start()

    def close(self) -> None:
        """End the server."""
        if self._board is not None:
            self._board.close()
        (self._folder.tensorboard / "address").unlink(missing_ok=True)

    def _announce(self) -> None:
        assert self._board is not None
        try:
            address = self._board.address()
            (self._folder.tensorboard / "address").write_text(address)
            self._say(f"searching, TensorBoard at {address}")
        except (EngineError, WaitError, OSError, ValueError) as error:
            if not self._board.has_ended:
                log.warning("%s", error)
