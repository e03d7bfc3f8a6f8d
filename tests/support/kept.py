"""Servers that tests start: no descendants of this process, since tests look for those that are left running.

A keeper beside each waits for the end of a pipe, and ends the server when this process closes it or is gone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_KEEPER = """
exec 3<&0
(
    "$@" < /dev/null >> "$LOG" 2>&1 3<&- &
    echo $!
    exec > /dev/null
    cat <&3 > /dev/null
    kill -9 $!
    rm -rf $REMOVE
) 2> /dev/null &
"""


class Kept:
    """A server that runs until `end`, or until this process is gone, however that ends.

    Args:
        command: The server.
        log: The file that its output is appended to.
        remove: Files and folders that are removed with it.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        remove: Sequence[Path] = (),
    ) -> None:
        self._log = log
        own = {"PATH": os.environ["PATH"], "LOG": str(log), "REMOVE": " ".join(map(str, remove))}
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER, "keeper", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=log.parent,
            env={**(environment or {}), **own},
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        self.pid = int(self._keeper.stdout.readline())
        self._keeper.wait()

    @property
    def is_alive(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait_until(self, is_ready: Callable[[], bool], timeout_s: float = 90.0) -> None:
        give_up_at = time.monotonic() + timeout_s
        while not is_ready():
            assert self.is_alive, self._log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < give_up_at, self._log.read_text(errors="replace")[-3000:]
            time.sleep(0.05)

    def end(self) -> None:
        """Kill it as `kill -9` does, and wait until it is gone; may be called twice."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        if self.is_alive:
            os.kill(self.pid, signal.SIGKILL)
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        give_up_at = time.monotonic() + 30
        while self.is_alive:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)


def free_ports(number: int) -> list[int]:
    """Return ports of this machine that are free now."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
