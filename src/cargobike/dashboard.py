"""The dashboard and its REST API as an ASGI application, for other servers to run; needs the extra `ui`."""

from __future__ import annotations

from cargobike.ui.web.app import create_app
from cargobike.ui.web.state import ServerState

__all__ = ["ServerState", "create_app"]
