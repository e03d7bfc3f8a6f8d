"""The first process of the workers, started before anything else is.

Python and the worker program take as long to load as the driver does. This module imports next to nothing, so that both
can load side by side; what the process is to do, it is told when the driver is ready.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

from cargobike.core.errors import EngineError
from cargobike.core.package import PACKAGE_PARENT

_CONTROL_FD = 3


class Boot:
    """A process that loads the worker program and waits for its first order.

    Args:
        module: The worker program; its `main` gets the number of the descriptor to listen on.

    Attributes:
        control: Our end of the connection to it.
        words_fd: A file in memory that holds what it wrote to its standard error.
        is_taken: Whether an engine has made it its own, and will end it.
    """

    def __init__(self, module: str) -> None:
        self.is_taken = False
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.words_fd = os.memfd_create("cargobike-host-stderr")
        self._ended: int | None = None
        program = f"import sys; sys.path.append({PACKAGE_PARENT!r}); from {module} import main; main({_CONTROL_FD})"
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-c", program],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, self.words_fd, 2),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), _CONTROL_FD),
                ],
                setsid=True,
            )
        except (OSError, TypeError) as error:
            raise EngineError(f"no worker can be started with {sys.executable!r}: {error}") from error
        finally:
            theirs.close()

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
            self.control.close()
            self.kill()
            os.close(self.words_fd)
