"""Keeps the index up to date while a long search runs, in a process beside the driver.

Without it the first reader after a search of a hundred thousand trials would fold all of its journal. The process is a
reader like any other: it has the journal and the index, the driver waits for nothing that it does, and whatever becomes
of it, the next reader goes on from where it came to. A search that is short is read in a moment, and gets none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cargobike.core.facts import Fact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.package import PACKAGE_PARENT

if TYPE_CHECKING:
    import subprocess

FACTS_OF_A_LONG_SEARCH: Final = 20_000
"""Reading so many takes about half a second."""
LONG_S: Final = 5.0
_GOODBYE_SHARE: Final = 0.02
_LONGEST_GOODBYE_S: Final = 1.0

log = logging.getLogger(__name__)


class IndexFeeder:
    """Starts a process that feeds the index once a search has turned out to be long, and ends it with the search.

    Guarantees: a search never fails by it, and waits for it only at its end: for a fiftieth of its time and at most a
    second, so that the process can read the last lines. However the driver ends, the process ends too.

    Args:
        folder: The experiment's folder.
        long_s: How long a search takes at least that gets such a process.
        many: How many facts it has by then.
    """

    def __init__(self, folder: ExperimentFolder, *, long_s: float = LONG_S, many: int = FACTS_OF_A_LONG_SEARCH) -> None:
        self._folder = folder
        self._long_s = long_s
        self._left = many
        self._began_s = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Count the facts of a search, and start the process when they have become many."""
        self._left -= len(facts)
        if self._left <= 0 and self._process is None and time.monotonic() - self._began_s >= self._long_s:
            self._start()

    def close(self) -> None:
        """Have the process read the last lines, and end it."""
        process = self._process
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()  # it reads on once more
        spent_s = time.monotonic() - self._began_s
        if not _has_ended(process, within_s=min(_LONGEST_GOODBYE_S, _GOODBYE_SHARE * spent_s)):
            process.kill()
            _has_ended(process, within_s=_LONGEST_GOODBYE_S)  # a disk that hangs holds up even what is killed

    def _start(self) -> None:
        import subprocess  # noqa: PLC0415 - only for long searches; the first trial would wait for it

        self._left = 2**62  # whatever happens, it is started once
        load = "from cargobike.experiments.index.feeding import main"
        program = f"import sys; sys.path.append({PACKAGE_PARENT!r}); {load}; main()"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program, str(os.getpid()), str(self._folder.root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C goes to the driver, which ends it
            )
        except (OSError, ValueError) as error:
            log.debug("%s: nothing feeds the index: %s", self._folder.id, error)


def _has_ended(process: subprocess.Popen[bytes], *, within_s: float) -> bool:
    """Wait for a process to end, looking often: `Popen.wait` looks at ever longer intervals."""
    give_up_at = time.monotonic() + within_s
    while process.poll() is None:
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(0.005)
    return True
