"""What all parts of the server share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.pages.listing import Listing
from cargobike.experiments.pages.live import LiveExperiments
from cargobike.ui.web.access import Access


@dataclass(frozen=True)
class ServerState:
    """The project, what is kept of it in memory, who may ask, and whether the server is about to end."""

    project: ProjectFolder
    access: Access
    live: LiveExperiments
    listing: Listing
    closing: threading.Event = field(default_factory=threading.Event)

    @staticmethod
    def of(project: ProjectFolder, access: Access | None = None) -> ServerState:
        """Make the state of a server of one project."""
        return ServerState(project, access or Access(), LiveExperiments(project), Listing(project))
