"""The kinds of things that a project keeps: each thing in a folder of its own, with a journal in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cargobike.core.facts import Facts
from cargobike.core.layout import JOURNAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Where the things of one kind lie, how they are called, and which of their files stay where they are.

    Attributes:
        name: What people call one of them, such as `experiment`.
        folder: The folder in the project that holds theirs, such as `experiments`.
        id: What the name of such a folder looks like.
        facts: What their journals hold.
        journal: The name of the journal.
        left_out: Files and folders, by their path in the thing's folder, that neither go to shared storage nor into an
            archive: derived from others, or true on this host only.
    """

    name: str
    folder: str
    id: re.Pattern[str]
    facts: Facts[Any, Any]
    journal: str = JOURNAL
    left_out: frozenset[str] = frozenset()

    def folders(self, project_root: Path) -> Iterator[Path]:
        """Yield the folders of all things of this kind; what begins with a dot is being made or removed."""
        try:
            names = sorted(entry.name for entry in (project_root / self.folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (project_root / self.folder / name for name in names if not name.startswith("."))
