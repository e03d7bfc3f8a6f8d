"""Workers on this machine that behave as on another one: they do not use the project's disk, files travel."""

from __future__ import annotations

from cargobike.core.running.hosting import Listening
from cargobike.engines.capabilities import Elsewhere
from cargobike.engines.local.engine import LocalEngine


class FarEngine(LocalEngine, Elsewhere):
    """Local processes without the project's disk; what stands for it is made in the working directory."""

    name = "far"
    may_share_disk = False

    @property
    def listening(self) -> Listening:
        """Loopback."""
        return Listening()
