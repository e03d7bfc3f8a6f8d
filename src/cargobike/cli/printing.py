"""How commands print: JSON for programs, tables and short words for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.text import Text

from cargobike.cli.grid import Grid
from cargobike.cli.terminal import neutralized
from cargobike.core import settings
from cargobike.core.facts import pack_number
from cargobike.core.values.times import on_calendar
from cargobike.core.values.words import number

_NO_EDGE: Final = 10_000


def print_json(value: object) -> None:
    """Print a value as JSON; NaN and infinities become the strings `nan`, `inf` and `-inf`."""
    encoded = msgspec.json.encode(_packed(value), enc_hook=str)
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def console() -> Console:
    """Return where tables go; made when needed, because tests and pipes replace standard output."""
    if far := settings.columns():
        return Console(highlight=False, markup=False, emoji=False, width=far, soft_wrap=True, force_terminal=True)
    plain_width = None if sys.stdout.isatty() else _NO_EDGE  # one row is one line for a program that reads a pipe
    return Console(highlight=False, markup=False, emoji=False, width=plain_width, soft_wrap=True)


def print_table(grid: Grid) -> None:
    """Print a table; if a program may read it, whole and without the blanks that fill its last column."""
    out = console()
    if out.is_terminal:
        out.width, left_out = grid.fit(out.width)
        out.print(grid)
        if left_out:
            names = " and ".join(name.lower() for name in left_out)
            out.print(Text(f"No room for {names}; a wider terminal shows all.", style="dim"), soft_wrap=True)
        return
    with out.capture() as captured:
        out.print(grid)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def table(
    *headings: str,
    right: tuple[str, ...] = (),
    shortened: tuple[str, ...] = (),
    folded: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
) -> Grid:
    """Make a table without lines.

    Args:
        *headings: One for each column, each different from the others.
        right: Columns of numbers.
        shortened: Columns whose texts are cut with `…` where a terminal is too narrow.
        folded: Columns whose texts go on in the next line there. If there are neither, that is the last column, unless
            it holds numbers.
        optional: Columns that are left out there, the first one first, if the others would not be whole.
    """
    if not shortened and not folded and headings[-1] not in right:
        folded = headings[-1:]
    grid = Grid(shortened=shortened, folded=folded, optional=optional)
    for heading in headings:
        grid.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading not in folded,
            overflow="fold",
        )
    return grid


def cell(value: object, style: str = "") -> Text:
    """Make a table cell of anything, with control characters made visible."""
    return Text(neutralized(str(value)).replace("\n", " "), style=style)


def parameters(params: Mapping[str, Any] | None) -> str:
    """Write parameters on one line, such as `lr=0.01 act=relu`."""
    texts = (f"{name}={number(value) if isinstance(value, float) else value}" for name, value in (params or {}).items())
    return " ".join(texts)


def age(since_s: float) -> str:
    """Write how long ago something was, in one unit."""
    passed = max(0.0, time.time() - since_s)
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= size:
            return f"{int(passed // size)} {name} ago"
    return "just now"


def moment(at_s: float) -> str:
    """Write a time on the clock, such as `2026-11-15 22:01:45`."""
    return on_calendar(at_s, None).strftime("%Y-%m-%d %H:%M:%S")


def utc(at_s: float | None) -> str | None:
    """Write a time for programs, such as `2026-11-15T21:01:45.000+00:00`."""
    return None if at_s is None else on_calendar(at_s).isoformat(timespec="milliseconds")


def _packed(value: object) -> object:
    if isinstance(value, float):
        return pack_number(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()  # a path may be no text
    if isinstance(value, Mapping):
        return {str(key): _packed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packed(item) for item in value]
    return value
