"""Workers on this machine that behave as on another one: they come over the network, or even without its disk."""

from __future__ import annotations

from cargobike.core.running.hosting import Listening
from cargobike.engines.capabilities import Elsewhere
from cargobike.engines.local.engine import LocalEngine


class KeyedEngine(LocalEngine, Elsewhere):
    """Local processes that reach the driver over the network, with keys, as those on other machines do."""

    name = "keyed"

    @property
    def listening(self) -> Listening:
        """Loopback."""
        return Listening()


class FarEngine(KeyedEngine):
    """Local processes without the project's disk; what stands for it is made in the working directory."""

    name = "far"
    may_share_disk = False
