"""Finds what workers have left behind, after the processes that would have ended it were themselves killed.

Every host process gets a mark in its environment, which everything below it inherits: children of train functions too,
also those that detach themselves. A process that carries the mark is therefore ours, and no other is. What was started
with an environment of its own choice does not carry it, and is not found.

A mark is a random word and the name of the driver's process, so that any later process can tell that the driver is dead
and what carries its mark belongs to no one any more.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from cargobike.core.running.descriptors import from_reserve
from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.settings import MARK

_LOOK_AGAIN_S = 0.005
_FAREWELL_S = 2.0
"""For hosts and agents that live longer than their driver to end what is below them."""


def new_mark() -> str:
    """Return a mark for what this process is about to start."""
    return f"{os.urandom(16).hex()} {name_of_this_process().strip()}"


def end_orphans(wait: Callable[[float], object] = time.sleep) -> int:
    """End what dead drivers of this user have left on this machine; returns of how many drivers something was left.

    Args:
        wait: Waits for some seconds; called only if something was found, which may be about to end by itself.
    """
    if not dead_among(_marks_of(os.geteuid())):
        return 0
    wait(_FAREWELL_S)
    marks = dead_among(_marks_of(os.geteuid()))
    for mark in marks:
        end_marked(mark)
    return len(marks)


def dead_among(marks: Iterable[str]) -> set[str]:
    """Return the marks whose driver has surely ended, without the one that this process carries itself."""
    return {mark for mark in marks if has_ended(mark.partition(" ")[2]) and mark != os.environ.get(MARK)}


def _marks_of(user: int) -> Iterator[str]:
    """Yield the marks of a user's processes."""
    begin = f"{MARK}=".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look at
            if process.stat().st_uid == user:
                for variable in (process / "environ").read_bytes().split(b"\0"):
                    if variable.startswith(begin):
                        yield os.fsdecode(variable.removeprefix(begin))


def end_marked(mark: str, spare: Collection[int] = (), patience_s: float = 2.0) -> None:
    """Kill every process with a mark, except `spare` and what is below them; waits until they are gone."""
    give_up_at = time.monotonic() + patience_s
    while sum(_kill(pid, mark) for pid in _processes(spare)) and time.monotonic() < give_up_at:
        time.sleep(_LOOK_AGAIN_S)  # what it has started meanwhile is found in the next round


def _kill(pid: int, mark: str) -> bool:
    """Kill a process if it carries the mark; returns whether it did."""
    try:
        # Opened before the look: should the number be given again, the signal reaches nobody.
        handle = from_reserve(functools.partial(os.pidfd_open, pid))
    except OSError:
        return False
    try:
        is_ours = f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if is_ours:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False  # it has ended, or is not ours to look at
    finally:
        os.close(handle)
    return is_ours


def _processes(spare: Collection[int]) -> Iterator[int]:
    """Yield all processes but this one, those to be spared and what is below them."""
    parents: dict[int, int] = {}
    for name in from_reserve(functools.partial(os.listdir, "/proc")):
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(f"/proc/{name}/stat").read_bytes()
                parents[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    for pid in parents:
        above: int | None = pid
        while above and above not in spare:
            above = parents.get(above)
        if not above and pid != os.getpid():
            yield pid
