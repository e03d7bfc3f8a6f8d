"""What all routes of experiments share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from cargobike.experiments.pages.listing import Listing
from cargobike.experiments.pages.live import LiveExperiments
from cargobike.ui.web.state import ServerState

NAME = "experiments"


@dataclass(slots=True)
class ExperimentPages:
    """The server, what is kept of its experiments in memory, and how many pages are listening to changes."""

    server: ServerState
    live: LiveExperiments
    listing: Listing
    listeners: int = 0

    @staticmethod
    def of(server: ServerState) -> ExperimentPages:
        """Make what the routes of one server share."""
        return ExperimentPages(server, LiveExperiments(server.project), Listing(server.project))


async def _state(request: Request) -> ExperimentPages:
    state: ExperimentPages = request.app.state.sections[NAME]
    return state


State = Annotated[ExperimentPages, Depends(_state)]
"""The parameter by which a route of experiments gets this state."""
