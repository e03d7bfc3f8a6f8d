"""What every part of the server may use: the project, the rules of access, and whether the server is about to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.access import Access
from cargobike.ui.web.overview.refreshed import Lately
from cargobike.ui.web.tracing.edges import EdgeBook

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server of one project."""

    project: ProjectFolder
    access: Access
    closing: threading.Event = field(default_factory=threading.Event)
    edges: EdgeBook = field(init=False)
    """What came from what in the project."""
    _lists: dict[str, Lately[Any]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin to keep what came from what."""
        object.__setattr__(self, "edges", EdgeBook(self.project))

    @staticmethod
    def of(project: ProjectFolder, access: Access | None = None) -> ServerState:
        """Make the state of a server of one project."""
        return ServerState(project, access or Access())

    def lately(self, name: str, make: Callable[[], _T]) -> _T:
        """Return what a function returns now; if it takes long, what it returned a moment ago.

        Args:
            name: Tells it from other functions: `data.tables`.
            make: The function; the first one that was given with this name counts.
        """
        answer: _T = self._lists.setdefault(name, Lately(make)).get()
        return answer
