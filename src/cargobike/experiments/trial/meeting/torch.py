"""Ranks of torch meet at a store in rank 0, by the variables of torchrun."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from cargobike.experiments.trial.meeting.meeting_place import MeetingPlace
from cargobike.experiments.trial.meeting.process_groups import keep_existing_groups, keep_process_groups
from cargobike.experiments.trial.meeting.way import Offer, Party, Ports, Way


class Torch(Way):
    """Where torch is loaded, the store is open before others learn its address; else rank 0 holds a port for it."""

    name = "torch"

    def __init__(self) -> None:
        self._store: Any = None

    def offer(self, ports: Ports, *, leads: bool, world_size: int) -> Offer:
        """Open the store in rank 0."""
        is_loaded = keep_process_groups()
        if not leads:
            return Offer()
        if not is_loaded:
            return Offer(ports.hold())
        return Offer(self._open_store(ports.address, world_size), is_open=True)

    def _open_store(self, address: str, world_size: int) -> int:
        """Open a store on a socket that listens already, so that a rank that comes early is not turned away."""
        listener = socket.socket()
        listener.bind((address, 0))
        listener.listen(socket.SOMAXCONN)
        port = int(listener.getsockname()[1])
        self._store = sys.modules["torch.distributed"].TCPStore(
            address, port, world_size, True, wait_for_workers=False, master_listen_fd=listener.detach()
        )
        return port

    def variables(self, party: Party) -> dict[str, str]:
        """Return what torchrun would set."""
        here, membership, store = party.here, party.membership, party.first.offers[self.name]
        hosts = list(dict.fromkeys(membership.hosts))
        variables = {
            "MASTER_ADDR": party.first.address,
            "MASTER_PORT": str(store.port),
            "RANK": str(here.rank),
            "WORLD_SIZE": str(here.world_size),
            "LOCAL_RANK": str(here.local_rank),
            "LOCAL_WORLD_SIZE": str(here.local_world_size),
            "GROUP_RANK": str(hosts.index(membership.hosts[membership.index])),
            "GROUP_WORLD_SIZE": str(len(hosts)),
            "ROLE_NAME": membership.role,
            "ROLE_RANK": str(here.rank),
            "ROLE_WORLD_SIZE": str(here.world_size),
            "TORCHELASTIC_RUN_ID": f"{here.id}-{here.attempt}",
            "TORCHELASTIC_RESTART_COUNT": str(here.attempt - 1),
            "TORCHELASTIC_MAX_RESTARTS": "0",
        }
        if store.is_open:
            variables["TORCHELASTIC_USE_AGENT_STORE"] = "True"
        return variables

    def prepare(self, party: Party) -> None:
        """Lead programs to the store that name another place."""
        here, port = party.here, party.first.offers[self.name].port
        MeetingPlace(party.first.address, port, here.rank, here.world_size, os.getpid()).lead_there()
        here.meeting_place = party.first.endpoint(self.name)

    def leave(self) -> bool:
        """Hold the groups that exist; other ranks may just be leaving their last collective."""
        keep_existing_groups()
        return self._store is not None
