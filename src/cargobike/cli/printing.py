"""How commands print: JSON for programs, tables and short words for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cargobike.cli.terminal import neutralized
from cargobike.core.facts import pack_number
from cargobike.core.values.words import number


def print_json(value: object) -> None:
    """Print a value as JSON; NaN and infinities become the strings `nan`, `inf` and `-inf`."""
    encoded = msgspec.json.encode(_packed(value), enc_hook=str)
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def console() -> Console:
    """Return where tables go; made when needed, because tests and pipes replace standard output."""
    plain_width = None if sys.stdout.isatty() else 10_000  # one row is one line for a program that reads a pipe
    return Console(highlight=False, markup=False, emoji=False, width=plain_width, soft_wrap=True)


def print_table(grid: Table) -> None:
    """Print a table; if a program may read it, without the blanks that fill its last column."""
    out = console()
    if out.is_terminal:
        out.print(grid)
        return
    with out.capture() as captured:
        out.print(grid)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def table(*headings: str, right: tuple[str, ...] = ()) -> Table:
    """Make a table without lines; columns in `right` are numbers, the last column takes what is left."""
    grid = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        last = heading == headings[-1]
        grid.add_column(heading, justify="right" if heading in right else "left", no_wrap=not last, overflow="fold")
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
    return datetime.fromtimestamp(at_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def utc(at_s: float | None) -> str | None:
    """Write a time for programs, such as `2026-11-15T21:01:45.000+00:00`."""
    return None if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")


def _packed(value: object) -> object:
    if isinstance(value, float):
        return pack_number(value)
    if isinstance(value, Mapping):
        return {str(key): _packed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packed(item) for item in value]
    return value
