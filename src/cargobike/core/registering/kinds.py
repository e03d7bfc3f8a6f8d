"""The kinds of things that a project keeps: each thing in a folder of its own, with a journal in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cargobike.core.facts import Facts
from cargobike.core.layout import JOURNAL

_NOTHING = re.compile(r"(?!)")


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
        on_demand: Which paths in the thing's folder are large, and brought or packed only if they are wanted.
        heads: The folder on shared storage that holds one small object for each thing, replaced whenever something of
            the thing has changed; empty for things that stay on the host that made them.
    """

    name: str
    folder: str
    id: re.Pattern[str]
    facts: Facts[Any, Any]
    journal: str = JOURNAL
    left_out: frozenset[str] = frozenset()
    on_demand: re.Pattern[str] = _NOTHING
    heads: str = ""

    def place(self, thing_id: str, *names: str) -> str:
        """Return where a thing, or a file of it, lies in a project, here and on shared storage."""
        return "/".join((self.folder, thing_id, *names))

    def head(self, thing_id: str) -> str:
        """Return where the head of a thing lies on shared storage."""
        return f"{self.heads}/{thing_id}"
