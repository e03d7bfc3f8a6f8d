"""The panel of the terminal display, drawn with rich; loaded only when there is something to draw."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cargobike.core.records import ExperimentState
from cargobike.experiments.display import text as words
from cargobike.experiments.display.snapshot import ProgressSnapshot

_WIDEST = 100
_MARGIN = 3  # a terminal echoes ^C behind the last line; without room for it the panel would slip down a line
_NARROW = 48
_COLOURS = {
    "completed": "green",
    "running": "cyan",
    "paused": "blue",
    "stopped": "yellow",
    "failed": "red",
    "retried": "magenta",
}
_BORDERS = {
    ExperimentState.RUNNING: "cyan",
    ExperimentState.COMPLETED: "green",
    ExperimentState.INTERRUPTED: "yellow",
    ExperimentState.FAILED: "red",
}


class _SteadyConsole(Console):
    """A console that reports a closed pipe instead of ending the process."""

    def on_broken_pipe(self) -> None:
        """Raise an error; rich itself would end the program here."""
        raise BrokenPipeError("the display's stream was closed")


class Screen:
    """The part of a terminal that belongs to one display, from the first drawing until `close`."""

    def __init__(self, stream: TextIO, console: Console | None = None) -> None:
        self._console = console or _SteadyConsole(file=stream, force_jupyter=False)
        # Printing to a terminal that shows the panel goes above it; a piped standard output is never touched.
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=False,
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )

    def draw(self, snapshot: ProgressSnapshot) -> None:
        """Draw, or draw again in the same place."""
        self._live.update(panel(snapshot, width=self._console.width))
        if not self._live.is_started:
            self._live.start()
        self._live.refresh()

    def close(self) -> None:
        """Leave the last drawing where it is and give cursor and streams back."""
        self._live.stop()


def panel(snapshot: ProgressSnapshot, *, width: int) -> RenderableType:
    """Return the panel for a terminal of this width; nothing in it is read as markup."""
    is_narrow = width < _NARROW
    outer = max(1, min(width - _MARGIN, _WIDEST))
    inner = outer if is_narrow else outer - 4
    rows: list[RenderableType] = [_bar_line(snapshot, inner), _counts_line(snapshot)]
    rows.append(_facts_grid(snapshot, inner, is_narrow=is_narrow))
    name = words.clean(snapshot.name, 40) or "experiment"
    phase = words.clean(snapshot.phase, 40)
    title = Text.assemble((name, "bold"), (" · ", "dim"), (phase, _border(snapshot)))
    if is_narrow:
        title.no_wrap, title.overflow = True, "ellipsis"
        return Constrain(Group(title, *rows), inner)
    return Panel(
        Group(*rows),
        title=title,
        title_align="left",
        subtitle=Text(snapshot.experiment_id, "dim"),
        subtitle_align="right",
        border_style=_border(snapshot),
        width=outer,
    )


def _bar_line(snapshot: ProgressSnapshot, width: int) -> Text:
    text = words.ended_of_total(snapshot)
    if not snapshot.total:
        return Text(text, no_wrap=True, overflow="ellipsis")
    text = f"  {text} · {min(100, 100 * snapshot.ended // snapshot.total)} %"
    cells = max(4, width - len(text))
    line = Text(no_wrap=True, overflow="ellipsis")
    reached = drawn = 0
    # Positions are rounded, not lengths, so that the parts never add up to more than the bar.
    for word, count in (
        ("completed", snapshot.completed),
        ("stopped", snapshot.stopped),
        ("failed", snapshot.failed),
    ):
        reached += count
        end = min(cells, cells * reached // snapshot.total)
        line.append("━" * (end - drawn), _COLOURS[word])
        drawn = end
    line.append("─" * (cells - drawn), "dim")
    line.append(text)
    return line


def _counts_line(snapshot: ProgressSnapshot) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    for word, count in words.counts(snapshot):
        if line:
            line.append(" · ", "dim")
        line.append(f"{count:,} {word}", _COLOURS[word] if count else "dim")
    return line


def _facts_grid(snapshot: ProgressSnapshot, width: int, *, is_narrow: bool) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=False)
    if not is_narrow:
        grid.add_column(style="dim", no_wrap=True, min_width=len("workers"))
    grid.add_column(overflow="ellipsis", no_wrap=True, max_width=width if is_narrow else width - 9)
    rows: list[tuple[str, Text]] = []
    best = words.best(snapshot)
    if best is not None:
        rows.append(("best", Text(best, "bold")))
    if chosen := words.best_params(snapshot, length=2 * (width - 9)):
        rows.append(("", Text(chosen, no_wrap=False, overflow="fold")))
    newest = words.latest(snapshot)
    if newest is not None:
        rows.append(("latest", Text(newest)))
    rows.append(("time", Text(" · ".join(words.pace(snapshot)))))
    if not snapshot.is_final:
        rows.append(("workers", Text(words.workers(snapshot))))
    if snapshot.data_pace is not None:
        rows.append(("data", Text(str(snapshot.data_pace))))
    if snapshot.reason:
        rows.append(("reason", Text(words.clean(snapshot.reason), _border(snapshot))))
    if snapshot.failures:
        last = snapshot.failures[-1]
        rows.append(("failed", Text(f"trial {last.trial}: {words.clean(last.line)}", "red")))
    for label, text in rows:
        if is_narrow:
            grid.add_row(text)
        else:
            grid.add_row(label, text)
    return grid


def _border(snapshot: ProgressSnapshot) -> str:
    return _BORDERS.get(snapshot.state, "cyan")


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError, OSError):
        return False
