"""A worker beside its task: the task can end and give its slot back, and the worker goes on.

Functions that are fed by other tasks of the same application need that: a cluster with as many slots as nodes has no
slot left for those who feed. What Spark would have done for the task is done here: the worker ends with its executor,
and as long as the task is there, with the task.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections.abc import Callable
from typing import Protocol

DETACHED = "detached"
"""What a task says whose worker goes on without it."""

_STANDARD = 3


class _Tether(Protocol):
    is_freed: bool

    def fileno(self) -> int: ...
    def forget(self) -> None: ...
    def let_go(self, ending: dict[str, str]) -> None: ...


class Aside:
    """What a worker beside its task looks at now and then.

    Args:
        tether: Its connection to the engine, which tells it to give the slot back.
        task: Our end of a pipe to the task.
        executor: The process of the executor.
    """

    def __init__(self, tether: _Tether, task: int, executor: int) -> None:
        self._tether, self._task = tether, task
        self._executor = -1
        with contextlib.suppress(OSError, AttributeError):  # no such process, or a system that cannot watch it
            self._executor = os.pidfd_open(executor)

    def goes_on(self) -> bool:
        """Give the slot back if that is wanted; tells whether the worker may go on."""
        if self._tether.is_freed and self._task >= 0:
            self.tell_task({"kind": DETACHED, "text": ""})
        return not (self._task >= 0 and _has_hung_up(self._task)) and not (
            self._executor >= 0 and _is_ready(self._executor)
        )

    def tell_task(self, words: dict[str, str]) -> None:
        """Say the last words to the task, if it has not ended before."""
        if self._task >= 0:
            with contextlib.suppress(OSError):
                os.write(self._task, json.dumps(words).encode())
            os.close(self._task)
            self._task = -1


def run_beside(work: Callable[[Aside], dict[str, str]], tether: _Tether) -> dict[str, str]:
    """Work in a process beside this one; returns how it ended, or that it goes on without us."""
    ours, theirs = os.pipe()
    executor = _parent_of(os.getppid())  # our parent is the daemon that forks the Python workers of an executor
    child = os.fork()
    if child == 0:
        _become_worker(work, tether, theirs, executor)
    os.close(theirs)
    tether.forget()
    os.waitpid(child, 0)
    try:
        return _last_words(ours)
    finally:
        os.close(ours)


def _become_worker(work: Callable[[Aside], dict[str, str]], tether: _Tether, task: int, executor: int) -> None:
    status = 1
    try:
        if os.fork():  # the task has no child that it would have to wait for
            os._exit(0)
        os.setsid()
        _close_all_but(tether.fileno(), task)
        aside = Aside(tether, task, executor)
        ending = work(aside)
        tether.let_go(ending)
        aside.tell_task(ending)
        status = 0
    finally:
        os._exit(status)


def _last_words(pipe: int) -> dict[str, str]:
    said = b""
    while part := os.read(pipe, 1 << 16):
        said += part
    words: dict[str, str] = json.loads(said) if said else {"kind": "place-lost", "text": "ended without a word"}
    return words


def _close_all_but(*kept: int) -> None:
    """Close what belongs to the task: Spark must see it when that has ended."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number >= _STANDARD and number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)


def _has_hung_up(pipe: int) -> bool:
    return bool(_events(pipe, 0) & (select.POLLERR | select.POLLHUP))


def _is_ready(descriptor: int) -> bool:
    return bool(_events(descriptor, select.POLLIN))


def _events(descriptor: int, wanted: int) -> int:
    poll = select.poll()
    poll.register(descriptor, wanted)
    return next((events for _, events in poll.poll(0)), 0)


def _parent_of(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0
