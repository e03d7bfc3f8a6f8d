"""What every part of the server may use: the project, the rules of access, and whether the server is about to end."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.access import Access
from cargobike.ui.web.tracing.edges import EdgeBook


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server of one project."""

    project: ProjectFolder
    access: Access
    closing: threading.Event = field(default_factory=threading.Event)
    edges: EdgeBook = field(init=False)
    """What came from what in the project."""

    def __post_init__(self) -> None:
        """Begin to keep what came from what."""
        object.__setattr__(self, "edges", EdgeBook(self.project))

    @staticmethod
    def of(project: ProjectFolder, access: Access | None = None) -> ServerState:
        """Make the state of a server of one project."""
        return ServerState(project, access or Access())
