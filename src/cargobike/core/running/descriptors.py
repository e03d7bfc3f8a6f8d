"""Descriptors for the driver: as many as the system allows, and a few in reserve for the moment when none is left.

Anyone who can reach a port of the driver can open connections that take up its descriptors. The limit is therefore
raised while an experiment runs. Processes that run user code get the limit that this process had before: some libraries
use `select()`, which cannot handle descriptors above 1023.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

ENOUGH = 65_536
IN_RESERVE = 16

FREE_DESCRIPTORS_WITHIN_S = 15.0
"""How long something is tried again that cannot be done while no descriptor is free."""

Opened = TypeVar("Opened")


class _Descriptors:
    """What this process has done about its descriptors; several experiments may run in it at once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.users = 0
        self.before: int | None = None
        self.reserve: list[int] = []

    def raise_limit(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
        if soft == resource.RLIM_INFINITY or soft >= most:
            return
        with contextlib.suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            self.before = soft

    def restore_limit(self) -> None:
        if self.before is not None:
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.before, hard))
            self.before = None

    def fill_up(self) -> None:
        with contextlib.suppress(OSError):
            while len(self.reserve) < IN_RESERVE:
                self.reserve.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def use_up(self) -> None:
        for fd in self.reserve:
            with contextlib.suppress(OSError):
                os.close(fd)
        self.reserve.clear()


_ours = _Descriptors()


@contextlib.contextmanager
def enough_descriptors() -> Iterator[None]:
    """Raise this process's limit, and hold a reserve, for the length of a `with` block."""
    with _ours.lock:
        if not _ours.users:
            _ours.raise_limit()
            _ours.fill_up()
        _ours.users += 1
    try:
        yield
    finally:
        with _ours.lock:
            _ours.users -= 1
            if not _ours.users:
                _ours.use_up()
                _ours.restore_limit()


def limit_before() -> int | None:
    """Return the limit that this process had before it was raised; `None` if it was not."""
    return _ours.before


def go_back_to(limit: int) -> None:
    """Give this process the limit that its parent had before; what is open beyond it is closed."""
    with contextlib.suppress(OSError, ValueError):
        os.closerange(limit, os.sysconf("SC_OPEN_MAX"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def from_reserve(open_it: Callable[[], Opened]) -> Opened:
    """Call something that opens descriptors; if none is left, call it again after giving up the reserve.

    The reserve is filled up again by the next call for which there is room.
    """
    try:
        return open_it()
    except Exception as error:
        if not is_out_of_descriptors(error):
            raise
    with _ours.lock:
        _ours.use_up()
        try:
            return open_it()
        finally:
            if _ours.users:
                _ours.fill_up()


def is_out_of_descriptors(error: BaseException) -> bool:
    """Tell whether something failed because this process, or the machine, had no descriptor left."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in {errno.EMFILE, errno.ENFILE}


def out_of_descriptors() -> str:
    """Say in words that there are none, and what to do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    what_to_do = "raise it with `ulimit -n` before you start" if soft == hard else f"`ulimit -n {hard}` raises it"
    return (
        f"no file descriptor was free: this process may have {soft} (RLIMIT_NOFILE). Close what your program does not "
        f"need, see whether strangers hold connections to it (`ss -tnp`), or {what_to_do}."
    )
