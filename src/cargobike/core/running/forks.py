"""What a forked copy of a process must not keep or do: it shares the original's descriptors, and its stack.

The interpreter calls us in every child that Python code forks (`os.fork`, `multiprocessing`, a `DataLoader`). A library
that forks by itself does not tell anybody: what matters must hold without this module too.
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
_has_any = [False]


def abandon_in_copies(belonging: Abandons) -> None:
    """See that no copy of this process keeps the descriptors of an object."""
    _belongings.add(belonging)
    _has_any[0] = True


def _abandon_all() -> None:
    if not _has_any[0]:  # as in nearly all processes: to look into the set would copy pages
        return
    for belonging in list(_belongings):
        belonging.abandon()
    _belongings.clear()


os.register_at_fork(after_in_child=_abandon_all)


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
