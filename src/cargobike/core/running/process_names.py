"""Names of processes that are never given twice.

A number alone says little: it is given again, and in another container it is another process. A name therefore also
holds the time of the start, the boot of the machine and the place where the number counts.
"""

from __future__ import annotations

import functools
import os
import socket
from pathlib import Path


def name_of_this_process() -> str:
    """Return a line such as `4711 tower 8812345 6d1c…/4026531836`."""
    pid = os.getpid()
    return f"{pid} {socket.gethostname() or 'localhost'} {_start_of(pid) or '-'} {_numbering()}\n"


def has_ended(name: str) -> bool:
    """Tell whether a process has surely ended; never of one whose end cannot be seen from here."""
    words = name.split()
    if len(words) != 4 or not words[0].isdecimal() or words[3] != _numbering() or "-" in words[2:]:
        return False
    pid = int(words[0])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is somebody else's
    start = _start_of(pid)
    return start is not None and start != words[2]


def _start_of(pid: int) -> str | None:
    """Return when a process has started, in ticks since boot; empty if it is dead and not buried, `None` if unknown."""
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return "" if words[0] in (b"Z", b"X") else words[19].decode()


@functools.cache
def _numbering() -> str:
    """Return where the numbers of processes mean the same as here: one boot of one machine, one container in it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "-"
