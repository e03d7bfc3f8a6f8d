"""Ending what the processes of a run left behind when they were killed and could not do so themselves."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from cargobike.core.settings import STEPS_OF


def sweep(run: Path, proc: Path = Path("/proc")) -> int:
    """Kill every process of this machine and user that was started by steps of a run; returns how many there were.

    They are known by a variable that the template was started with: it holds the folder of the run.
    """
    mark = f"{STEPS_OF}={run}".encode()
    count = 0
    for entry in proc.iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                count += 1
    return count
