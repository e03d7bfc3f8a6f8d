"""The daemon of this project as a source: it reaches members that call it, and that no one can dial."""

from __future__ import annotations

from typing import Final

from cargobike.core.errors import CargobikeError
from cargobike.sharing.daemon.control import ask_daemon
from cargobike.sharing.daemon.messages import AskStatus, Status
from cargobike.sharing.network.membership import Membership

_WAIT_S: Final = 5.0


def own_daemon(membership: Membership) -> list[str]:
    """Return where the daemon of this project and network is, if one runs and others lend to it; it may be dialled."""
    try:
        status = ask_daemon(membership.project, membership.network.name, AskStatus(), timeout_s=_WAIT_S)
    except (CargobikeError, OSError):
        return []
    if not isinstance(status, Status) or not status.lenders:
        return []
    membership.own_daemon = status.address
    return [status.address]
