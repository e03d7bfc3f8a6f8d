"""The errors that elastic programs catch."""

from __future__ import annotations

from cargobike.core.errors import CargobikeError


class HorovodInternalError(CargobikeError, RuntimeError):
    """An operation failed because ranks disagree, or because one is gone; `elastic.run` restores and goes on."""


class HostsUpdatedInterrupt(CargobikeError, RuntimeError):
    """Hosts have come or gone.

    Attributes:
        skip_sync: Whether the state need not be broadcast: hosts have only gone.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts of this job have changed")
        self.skip_sync = skip_sync
