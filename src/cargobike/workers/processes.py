"""What the kernel can do so that no process outlives the one it belongs to (Linux; elsewhere: pipes only)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import sys
import time
from _signal import (  # type: ignore[import-not-found] # `signal` wraps it in enumerations
    SIG_DFL,
    SIG_IGN,
    SIGKILL,
    signal,
)
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

set_handler: Callable[[int, Callable[[int, Any], Any] | int], object] = signal
"""What `signal.signal` does, without lines of Python that each new process would be the first to run."""
DEFAULT: int = SIG_DFL
IGNORED: int = SIG_IGN


def die_with_parent(parent_pid: int) -> None:
    """Make the kernel kill this process when its parent dies, and die now if that has already happened."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def volunteer() -> None:
    """Make the kernel choose this process and its children, not the driver, when the machine runs out of memory."""
    # Not by a file object: every line of Python that a process is the first to run after its fork copies some pages.
    with contextlib.suppress(OSError):
        handle = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(handle, b"500")
        finally:
            os.close(handle)


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process, so that it can end them."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_of(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """Return the pids of the direct children of a process."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"{proc}/{pid}/task"):
            with contextlib.suppress(OSError), open(f"{proc}/{pid}/task/{task}/children", "rb", buffering=0) as file:
                pids += map(int, file.read().split())
    return pids


def processor_seconds(parent: int) -> float:
    """Return the processor time that everything below a process has used."""
    total = 0.0
    for child in children_of(parent):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / TICKS
        total += processor_seconds(child)
    return total


def await_ends(pids: Collection[int], patience_s: float) -> None:
    """Wait for processes that are about to end by themselves, but no longer than `patience_s`."""
    poller = select.poll()
    handles: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended already
            handles.add(os.pidfd_open(pid))
    for handle in handles:
        poller.register(handle, select.POLLIN)
    waiting = set(handles)
    give_up_at = time.monotonic() + patience_s
    while waiting and (left_s := give_up_at - time.monotonic()) > 0:
        for handle, _ in poller.poll(left_s * 1000):
            poller.unregister(handle)
            waiting.discard(handle)
    for handle in handles:
        os.close(handle)


def end_descendants(spare: Collection[int] = (), patience_s: float = 2.0) -> None:
    """Kill and reap everything below this process, except `spare` and what is below them.

    Needs `adopt_orphans`: what a dying process leaves behind becomes our child and is found in the next round.
    """
    me = os.getpid()
    give_up_at: float | None = None
    while children := [child for child in children_of(me) if child not in spare]:
        for child in children:
            for pid in _tree(child):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        now = time.monotonic()
        give_up_at = give_up_at or now + patience_s
        if now > give_up_at:
            return  # it hangs in the kernel and cannot be ended
        time.sleep(0.001)


def _tree(pid: int) -> Iterator[int]:
    """Yield a process and all below it, from the top, so that a process is killed before it can start more."""
    yield pid
    for child in children_of(pid):
        yield from _tree(child)
