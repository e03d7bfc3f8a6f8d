"""Releases that are asked for in the dashboard: they may take minutes, and a request does not wait so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from cargobike.core.errors import CargobikeError

_LONGEST_S: Final = 20.0


def begin(action: Callable[[], object], within_s: float = _LONGEST_S) -> bool:
    """Do something in a thread, and return whether it was done in a time; else it goes on.

    The supervisor owns a release and finishes it, whatever becomes of this process; the thread only waits for it.

    Raises:
        CargobikeError: What it raised, if that was in time.
    """
    problems: list[CargobikeError] = []

    def act() -> None:
        try:
            action()
        except CargobikeError as error:
            problems.append(error)

    thread = threading.Thread(target=act, name="release", daemon=True)
    thread.start()
    thread.join(within_s)
    if problems:
        raise problems[0]
    return not thread.is_alive()
