"""What a forked copy of a process must not keep or do: it shares the original's descriptors, and its stack.

The interpreter calls us in every child that Python code forks (`os.fork`, `multiprocessing`, a `DataLoader`). A library
that forks by itself does not tell anybody: what matters must hold without this module too.

Workers are forked from processes that have one thread and have run nothing. Most of what Python does in a child is
needless there: `threading`, `logging` and `random` ask to be called, the first two for locks that another thread may
have held at that moment, the third to begin with another seed. Each line that a child is the first to run copies pages
that it shares with its parent, and these lines copy a sixth of all that a small trial copies.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import NoReturn, Protocol


class Abandons(Protocol):
    """Something that belongs to one process."""

    def abandon(self) -> None:
        """Close our descriptors; called in a copy of the process, to which they do not belong."""


_belongings: weakref.WeakSet[Abandons] = weakref.WeakSet()
_is_registered = False


def abandon_in_copies(belonging: Abandons) -> None:
    """See that no copy of this process keeps the descriptors of an object."""
    global _is_registered
    _belongings.add(belonging)
    if not _is_registered:  # workers have none, and a hook that does nothing would still cost each of their forks
        _is_registered = True
        os.register_at_fork(after_in_child=_abandon_all)


def _abandon_all() -> None:
    for belonging in list(_belongings):
        belonging.abandon()
    _belongings.clear()


def never_free(thing: object) -> None:
    """Have an object outlive this process, a copy of the one it belongs to.

    Its sockets and its selector are the original's too: closing them here would leave the original waiting, and threads
    of a library that would have to end do not exist here.
    """
    from ctypes import py_object, pythonapi  # noqa: PLC0415 - only in copies of a process

    pythonapi.Py_IncRef(py_object(thing))


def end_copy(error: BaseException | None, describe: Callable[[BaseException], str] | None = None) -> NoReturn:
    """End a copy of this process that user code forked and that came out of it: the original goes on for both.

    It ends as a Python program would, with the exit code that its parent may be waiting for.

    Args:
        error: What it came out with.
        describe: Makes the text that is written to standard error; the usual traceback by default.
    """
    code = 0 if error is None else 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        code = error.code or 0
    elif isinstance(error, SystemExit):
        _complain(str(error.code))
    elif error is not None and describe is not None:
        _complain(describe(error))
    elif error is not None:
        sys.__excepthook__(type(error), error, error.__traceback__)
    flush_streams()
    os._exit(code & 0xFF)


def _complain(text: str) -> None:
    os.write(2, f"{text}\n".encode(errors="backslashreplace"))


def flush_streams() -> None:
    """Flush what was printed, whatever user code has made of the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112 - it may be closed, replaced or missing
            continue


Hook = Callable[[], object]

_NEEDLESS = frozenset({"threading", "logging", "random"})
_before: list[Hook] = []
_in_parent: list[Hook] = []
_in_child: list[Hook] = []
_is_ours = False
_register = os.register_at_fork


def take_over() -> None:
    """Keep what these modules register from now on, to call it in all forks but ours; call it before they are loaded.

    What other modules register is called in every fork.
    """
    _register(before=_call_before, after_in_parent=_call_in_parent, after_in_child=_call_in_child)
    os.register_at_fork = _keep


def fork() -> int:
    """Fork as `os.fork` does, without the hooks that this process does not need.

    It must have one thread. Its child has the same random state: a program that needs another one seeds it.
    """
    global _is_ours
    _is_ours = True
    try:
        return os.fork()
    finally:
        _is_ours = False


def before_copies(hook: Hook) -> None:
    """Have a hook called before every fork but ours."""
    if os.register_at_fork is _keep:
        _before.append(hook)
    else:
        os.register_at_fork(before=hook)


def _keep(
    *, before: Hook | None = None, after_in_child: Hook | None = None, after_in_parent: Hook | None = None
) -> None:
    hooks = {"before": before, "after_in_child": after_in_child, "after_in_parent": after_in_parent}
    given = {name: hook for name, hook in hooks.items() if hook is not None}
    if not given or not all(getattr(hook, "__module__", None) in _NEEDLESS for hook in given.values()):
        _register(**given)
        return
    for hook, kept in ((before, _before), (after_in_child, _in_child), (after_in_parent, _in_parent)):
        if hook is not None:
            kept.append(hook)


def _call_before() -> None:
    if not _is_ours:
        for hook in reversed(_before):
            hook()


def _call_in_parent() -> None:
    if not _is_ours:
        for hook in _in_parent:
            hook()


def _call_in_child() -> None:
    if not _is_ours:
        for hook in _in_child:
            hook()
