"""What it means for an attempt that its process has died."""

from __future__ import annotations

import signal
from typing import Final

from cargobike.core.running.ending import process_ending
from cargobike.experiments.trial.messages import AttemptEnd
from cargobike.workers.wire.messages import Died

LAST_OUTPUT: Final = "Last output:"
"""The line between an error and what was printed last."""

_SILENT_EXIT: Final = (
    ": os._exit(0) or a library has ended it, so that it could say neither what it returns nor whether it was done. "
    "Return from the function, or call sys.exit(0)."
)


def end_of_dead(died: Died, *, has_peers: bool) -> AttemptEnd:
    """Return how an attempt went whose process has ended before the train function was done.

    Args:
        died: What the agent has seen.
        has_peers: Whether other members of a gang run the attempt together with it. A rank that was about to be ended
            because another one failed may have been the cause itself, so that only the kill excuses it.
    """
    how = str(process_ending(died.code))
    error = ""
    by_itself = not (died.killed if has_peers else died.halted)
    if by_itself:
        error = f"the process of the trial {how} before the train function returned"
        if died.code == -signal.SIGKILL:
            error += f"; the machine may have run out of memory (peak {died.peak_memory_bytes / 2**20:.0f} MiB)"
        elif died.code == 0:
            error += _SILENT_EXIT
    # A code of 0 says that the program itself wanted to end: it would do so in every other attempt.
    is_lost = has_peers and died.code != 0
    return AttemptEnd(
        "stopped" if not by_itself else "lost" if is_lost else "failed",
        error=error or None,
        alike=how,
        peak_memory_bytes=died.peak_memory_bytes,
    )


def with_last_output(error: str | None, last_output: str) -> str | None:
    """Return the text of an error, followed by what was printed last, unless the error says that already."""
    said = {line.strip() for line in (error or "").splitlines()}
    if all(line.strip() in said for line in last_output.splitlines() if line.strip()):
        return error
    return "\n".join(filter(None, (error, last_output and f"{LAST_OUTPUT}\n{last_output}"))) or None
