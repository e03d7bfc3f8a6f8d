"""Shows where a process stood when compiled code crashed: the interpreter wrote it to standard error. Pure."""

from __future__ import annotations

import re
from typing import Final

from cargobike.experiments.scheduling.blame import shorten
from cargobike.workers.output import CRASH

_MOST_CHARACTERS: Final = 4000
_THREADS: Final = re.compile(r"\n\n(?=(?:Current thread|Thread) )")
_CURRENT: Final = "Current thread "
_EXTENSIONS: Final = re.compile(r"\n+Extension modules: [^\n]*(?:\n|$)")


def with_crash(error: str | None, last_output: str) -> tuple[str | None, str]:
    """Move the stacks of a crash from the last output into the error, the thread that crashed first.

    Returns:
        The error, and what is left of the output.
    """
    before, mark, dump = last_output.rpartition(CRASH)
    if error is None or not mark:
        return error, last_output
    head, *threads = _THREADS.split(_EXTENSIONS.sub("\n", dump))
    threads.sort(key=lambda thread: not thread.startswith(_CURRENT))
    stacks = "\n".join(shorten(thread).strip("\n") for thread in threads)
    return f"{error}\n{mark}{head.strip()}\n{stacks[:_MOST_CHARACTERS]}".rstrip(), before
