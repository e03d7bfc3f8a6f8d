"""How many ranks have room, as a script of the user's says again and again."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import IO, Final

from cargobike.compat.horovod.runner.hosts import is_here, read_discovered
from cargobike.core.errors import InvalidInputError, WaitError

ANY_NUMBER: Final = 1 << 16
"""The most ranks, where only the hosts that are discovered say how many."""

EVERY_S: Final = 1.0
PATIENCE_S: Final = 30.0


class Discovery:
    """Runs a script now and then that prints `host:slots` in each line, without waiting for it.

    Args:
        script: The program and its arguments, as in a shell.
        slots: How many ranks have room on a host for which it does not say so.
    """

    def __init__(self, script: str, slots: int = 1) -> None:
        self._script = script
        self._slots = slots
        self._next = 0.0
        self._began = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._printed: IO[bytes] | None = None
        self._told: set[str] = set()

    def __call__(self) -> int | None:
        """Return how many ranks have room on this machine; `None` if there is no news."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._next:
                self._begin(now)
            return None
        code = self._process.poll()
        if code is None:
            if now > self._began + PATIENCE_S:
                self._process.kill()
            return None
        self._process.wait()
        self._process, self._next = None, now + EVERY_S
        assert self._printed is not None
        self._printed.seek(0)
        text = self._printed.read().decode("utf-8", "replace")
        self._printed.close()
        if code:
            self._tell(f"the host discovery script {self._script} ended with code {code}; what it said last counts on")
            return None
        try:
            hosts = read_discovered(text, self._slots)
        except InvalidInputError as error:
            self._tell(str(error))
            return None
        for name in hosts:
            if not is_here(name):
                self._tell(f"ranks are started on this machine only; {name}, which {self._script} names, is not used")
        return sum(slots for name, slots in hosts.items() if is_here(name))

    def first(self) -> int:
        """Wait for the first answer.

        Raises:
            WaitError: If there is none in time.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if (slots := self()) is not None:
                return slots
            if self._process is None and self._told:
                break
            time.sleep(0.01)
        raise WaitError(f"The host discovery script {self._script} has not named any host: it must print host:slots.")

    def close(self) -> None:
        """End the script if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._printed is not None:
            self._printed.close()

    def _begin(self, now: float) -> None:
        self._began = now
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the script has ended
        self._process = subprocess.Popen(
            shlex.split(self._script), stdin=subprocess.DEVNULL, stdout=self._printed, start_new_session=True
        )

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            sys.stderr.write(f"cargobike: {text}\n")


def looking(discovery: Discovery | None, slots: int) -> Callable[[], int | None]:
    """Return a function that says how many ranks have room: as discovered, or always the same."""
    seen = [slots]

    def look_around() -> int | None:
        if discovery is not None and (news := discovery()) is not None:
            seen[0] = news
        return seen[0]

    return look_around
