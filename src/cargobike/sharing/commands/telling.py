"""Compare catalogues with members before something is looked for, and after something was signed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cargobike.core.errors import CargobikeError, NotFoundError
from cargobike.sharing.daemon.control import ask_daemon
from cargobike.sharing.daemon.messages import Gossip
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.network.network import open_network
from cargobike.store.files import project


def tell_members(network: str) -> bool:
    """Have members learn what was signed, by the daemon or, if none runs, from here; tells whether a daemon runs."""
    here = project.current()
    try:
        ask_daemon(here, network, Gossip())
    except (CargobikeError, OSError):
        try:
            with Membership(here, network) as membership:
                membership.gossip_with_all()
        except (CargobikeError, OSError):
            pass  # without the secret, or anyone to ask: they learn of it when a daemon runs
        return False
    return True


def ask_members(network: str, peers: Sequence[str], secret_file: Path | None, members: Path | None) -> None:
    """Learn what members at some addresses know.

    Raises:
        NotFoundError: If none of them answers; says why of each.
    """
    if not peers:
        return
    opened = open_network(project.prepare(), network, secret_file=secret_file, members_file=members)
    with Membership(project.prepare(), opened, peers) as membership:
        problems = membership.gossip_with_all(peers)
    failed = [f"{address}: {problem}" for address, problem in problems.items() if problem is not None]
    if failed and len(failed) == len(problems):
        raise NotFoundError(f"No member could be asked. {'; '.join(failed)}")
