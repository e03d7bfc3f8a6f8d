"""The interface of displays, and the choice of the one that fits where the driver runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Protocol, TextIO

from cargobike.core.facts import Fact
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.usage import DataPace

__all__ = ["Display", "QuietDisplay", "choose_display"]


class Display(Protocol):
    """Shows an experiment while it runs, from the record that its driver keeps.

    Guarantees: no method raises (a display that cannot draw stops drawing: a search is worth more than its
    picture), none starts a thread, none writes to a standard output that is not a terminal. Duties of the
    caller: apply facts to the record first, pass times on the clock of the facts, call `close` in a `finally` block.
    """

    def update(self, facts: Sequence[Fact]) -> None:
        """Note what has happened; cheap, draws nothing."""

    def refresh(self, now_s: float) -> None:
        """Draw if it is time to; meant to be called about ten times a second."""

    def phase(self, text: str) -> None:
        """Say in a few words what is going on, such as `importing torch…` or `stopping`."""

    def draws_data(self, pace: DataPace | None) -> None:
        """Say how fast trials draw rows, `None` if they draw none; cheap, draws nothing."""

    def close(self, now_s: float) -> None:
        """Draw the last state, leave it on the screen and give the screen back; may be called twice."""


class QuietDisplay:
    """Shows nothing."""

    def update(self, facts: Sequence[Fact]) -> None:
        """Do nothing."""

    def refresh(self, now_s: float) -> None:
        """Do nothing."""

    def phase(self, text: str) -> None:
        """Do nothing."""

    def draws_data(self, pace: DataPace | None) -> None:
        """Do nothing."""

    def close(self, now_s: float) -> None:
        """Do nothing."""


def choose_display(
    record: ExperimentRecord, *, quiet: bool, stream: TextIO | None = None, plain: bool = False
) -> Display:
    """Return the display that fits: for a notebook, a terminal, plain lines, or one that shows nothing.

    Args:
        record: The experiment to show; the caller keeps it up to date.
        quiet: Show nothing.
        stream: Where to draw outside a notebook; standard error if not given.
        plain: Write lines only, where a debugger may need the screen.
    """
    stream = sys.stderr if stream is None else stream
    if quiet:
        return QuietDisplay()
    # Only the display that is used is loaded: the first trial waits for it.
    if _is_in_notebook() and not plain:
        from cargobike.experiments.display.notebook import NotebookDisplay  # noqa: PLC0415

        return NotebookDisplay(record)
    if stream is None:  # a process without a console has no standard error
        return QuietDisplay()
    if not plain and _can_animate(stream):
        from cargobike.experiments.display.terminal import TerminalDisplay  # noqa: PLC0415

        return TerminalDisplay(record, stream)
    from cargobike.experiments.display.plain import PlainDisplay  # noqa: PLC0415

    return PlainDisplay(record, stream)


def _is_in_notebook() -> bool:
    """Tell whether this is an IPython kernel; in a kernel IPython is loaded already, so it is not imported here."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if get_ipython is not None else None
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


def _can_animate(stream: TextIO) -> bool:
    is_dumb = os.environ.get("TERM", "") in {"dumb", "unknown"}
    is_unattended = os.environ.get("CI", "").lower() not in {"", "0", "false"}
    has_lines = (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")
    if is_dumb or is_unattended or not has_lines:
        return False
    try:
        return stream.isatty()
    except (AttributeError, ValueError, OSError):  # a stream that is closed, or only looks like one
        return False
