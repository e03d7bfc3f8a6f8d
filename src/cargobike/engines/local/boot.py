"""The first process of the workers, started before anything else is.

Python and the worker program take as long to load as the driver does. This module imports next to nothing, so that both
can load side by side; what the process is to do, it is told when the driver is ready.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys
import time

from cargobike.core.errors import EngineError
from cargobike.core.package import PACKAGE_PARENT, load_msgspec
from cargobike.core.running.descriptors import (
    go_back_to,
    is_out_of_descriptors,
    limit_before,
    out_of_descriptors,
)
from cargobike.core.running.forks import abandon_in_copies, take_over
from cargobike.core.running.inherited import CONTROL_FD, DRIVER_FD
from cargobike.core.settings import MARK
from cargobike.engines.local.leftovers import new_mark

_FIRST = "; ".join(
    f"from {step.__module__} import {step.__name__}; {step.__name__}()" for step in (take_over, load_msgspec)
)


class Boot:
    """A process that loads the worker program and waits for its first order.

    Args:
        module: The worker program; its `main` gets the number of the descriptor to listen on.

    Attributes:
        control: Our end of the connection to it.
        words_fd: A file in memory that holds what it wrote to its standard error.
        mark: A word in its environment, by which everything below it can be found.
        is_taken: Whether an engine has made it its own, and will end it.
    """

    def __init__(self, module: str) -> None:
        self.is_taken = False
        self.mark = new_mark()
        self._ended: int | None = None
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            try:
                self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                ours.enter_context(self.control)
                self.control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                control_fd = _lift(other.detach())
                theirs.callback(os.close, control_fd)
                self.words_fd = _lift(os.memfd_create("cargobike-host-stderr"))
                ours.callback(os.close, self.words_fd)
                driver_fd = _lift(os.pidfd_open(os.getpid()))
                theirs.callback(os.close, driver_fd)
                self._pid = self._spawn(module, control_fd, driver_fd)
            except (OSError, TypeError) as error:
                why = out_of_descriptors() if is_out_of_descriptors(error) else error
                raise EngineError(f"no worker can be started with {sys.executable!r}: {why}") from error
            ours.pop_all()
        abandon_in_copies(self)

    def _spawn(self, module: str, control_fd: int, driver_fd: int) -> int:
        limit = limit_before()
        go_back = f"from {go_back_to.__module__} import go_back_to; go_back_to({limit}); " if limit is not None else ""
        program = f"{_FIRST}; from {module} import main; main({CONTROL_FD})"
        start = "import gc, sys; gc.disable()"  # until all is loaded: what loading makes is there to stay
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-c", f"{start}; sys.path.append({PACKAGE_PARENT!r}); {go_back}{program}"],
            {**os.environ, MARK: self.mark},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, self.words_fd, 2),
                (os.POSIX_SPAWN_DUP2, control_fd, CONTROL_FD),
                (os.POSIX_SPAWN_DUP2, driver_fd, DRIVER_FD),
            ],
            setsid=True,
        )

    def abandon(self) -> None:
        """Close our end in a copy of this process."""
        self.control.close()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or `None` while it lives."""
        if self._ended is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # other code has waited for all children of this process
                pid, status = self._pid, 0
            if pid:
                self._ended = os.waitstatus_to_exitcode(status)
        return self._ended

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end, and tell whether it came."""
        give_up_at = time.monotonic() + timeout_s
        pause_s = 0.0005
        while self.poll() is None:
            if time.monotonic() > give_up_at:
                return False
            time.sleep(pause_s)
            pause_s = min(0.01, 2 * pause_s)
        return True

    def kill(self) -> None:
        """End it now."""
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)
            self.wait(5.0)

    def last_words(self) -> str:
        """Return the end of what it wrote to its standard error."""
        size = os.fstat(self.words_fd).st_size
        return os.pread(self.words_fd, 4000, max(0, size - 4000)).decode(errors="replace").strip()

    def __enter__(self) -> Boot:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_taken:
            self.close()

    def close(self) -> None:
        """End it, and close our ends; for those that no engine has made its own."""
        self.control.close()
        self.kill()
        os.close(self.words_fd)


def _lift(fd: int) -> int:
    """Move a descriptor out of the way of those that the new process gets: a driver may have its own 0 to 2 closed."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, DRIVER_FD + 1)
    finally:
        os.close(fd)
