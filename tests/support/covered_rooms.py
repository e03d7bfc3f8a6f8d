"""How much of each room was run, as a table: `python tests/support/covered_rooms.py coverage.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any


@dataclass(frozen=True, slots=True)
class Room:
    """What was run of the statements of one room."""

    name: str
    statements: int
    missing: int

    @property
    def share(self) -> float:
        """The part that was run, 1 for a room without statements."""
        return 1 - self.missing / self.statements if self.statements else 1.0


def rooms_of(files: Mapping[str, Any]) -> list[Room]:
    """Sum up the files of a report of `coverage json` by room and inner room, and over all."""
    statements: dict[str, int] = {}
    missing: dict[str, int] = {}
    for path, report in files.items():
        for name in _rooms_around(path):
            statements[name] = statements.get(name, 0) + report["summary"]["num_statements"]
            missing[name] = missing.get(name, 0) + report["summary"]["missing_lines"]
    return [Room(name, statements[name], missing[name]) for name in sorted(statements, key=_order)]


def _rooms_around(path: str) -> Iterable[str]:
    """Return the room of a file, its inner room, and the whole house."""
    parts = PurePath(path).parts
    inside = parts[len(parts) - parts[::-1].index("cargobike") :]
    room = inside[0] if len(inside) > 1 else "(doors)"
    yield "all"
    yield room
    if len(inside) > 2:
        yield f"{room}/{inside[1]}"


def _order(name: str) -> tuple[bool, str]:
    return name == "all", name


def table(rooms: Iterable[Room]) -> str:
    """Return a line for each room: its share, and how much of it was not run."""
    return "\n".join(
        f"{'  ' if '/' in room.name else ''}{room.name:<32}".ljust(34)
        + f"{room.share:6.1%} {room.missing:6} of {room.statements:6} lines not run"
        for room in rooms
    )


if __name__ == "__main__":
    print(table(rooms_of(json.loads(Path(sys.argv[1]).read_text())["files"])))
