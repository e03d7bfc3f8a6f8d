"""What every part of the server may use: the project, the rules of access, and whether the server is about to end."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.access import Access


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server of one project."""

    project: ProjectFolder
    access: Access
    closing: threading.Event = field(default_factory=threading.Event)

    @staticmethod
    def of(project: ProjectFolder, access: Access | None = None) -> ServerState:
        """Make the state of a server of one project."""
        return ServerState(project, access or Access())
