"""How the ranks of a gang find each other, in any framework.

Each member binds the ports that its framework will listen on, tells the others, and holds them until it ends. Bound
with `SO_REUSEADDR` and not listening, a port cannot be taken by another process, while the framework, which binds with
the same option (torch, and gRPC under TensorFlow and JAX), can open it in the same process at any time: no port is ever
free between being chosen and being used. The torch store is even open before others learn its address.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from cargobike.core.errors import WaitError
from cargobike.core.running.member import Role
from cargobike.experiments.trial.context import TrialContext
from cargobike.experiments.trial.gang import PATIENCE_S
from cargobike.experiments.trial.meeting.way import Party, Peer, Ports
from cargobike.experiments.trial.meeting.ways import WAYS
from cargobike.experiments.trial.messages import Membership
from cargobike.workers.whereabouts import interface_of

_LEAVE_S = 1.0
_MEET_S = 120.0
_VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


_decode = msgspec.msgpack.Decoder(Peer).decode


class Meeting:
    """What must stay open while the train function runs: the ports that are held, and the servers on them."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.ways = [way() for way in WAYS]

    def leave(self, here: TrialContext) -> None:
        """Give other ranks a moment to finish with what is open here: some may just be leaving their last collective.

        No longer: one that waits for a rank that has returned should learn that now.
        """
        are_needed = [way.leave() for way in self.ways]
        if here.world_size > 1:
            here.gang.publish("returned", b"")
            if any(are_needed):
                with contextlib.suppress(WaitError):
                    here.gang.gather("returned", of="workers", timeout_s=_LEAVE_S)


def meet(here: TrialContext, gpus: tuple[str, ...]) -> Meeting:
    """Find the other members, and tell every framework through the environment where they are."""
    membership = here.membership
    assert membership is not None
    meeting = Meeting(Ports(here.gang.address))
    leads = membership.index == 0
    own = Peer(
        address=here.gang.address,
        offers={way.name: way.offer(meeting.ports, leads=leads, world_size=here.world_size) for way in meeting.ways},
        gpus=gpus,
        checkpoint=newest_checkpoint(here.checkpoints_root) if leads else "",
    )
    patience_s = max(_MEET_S, membership.stall_timeout_s or PATIENCE_S)  # imports take as long as they take
    values = here.gang.exchange("rendezvous", msgspec.msgpack.encode(own), timeout_s=patience_s)
    party = Party(here, membership, [_decode(value) for value in values])
    visible, here.device_index = _share_devices(membership, party.peers)
    for variable in _VISIBLE_DEVICES:
        os.environ[variable] = ",".join(visible)
    if membership.role != Role.SERVER:
        here.began_with = party.first.checkpoint
        for way in meeting.ways:
            os.environ.update(way.variables(party))
            way.prepare(party)
    interface = interface_of(own.address)
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        os.environ.setdefault("TP_SOCKET_IFNAME", interface)
    return meeting


def _share_devices(membership: Membership, peers: list[Peer]) -> tuple[tuple[str, ...], int | None]:
    """Return the GPUs that this rank may see, and which of them is its own.

    Code for torchrun takes the device with the number of its local rank. Where each rank on a host has one GPU, all
    of them are therefore visible to each, in that order. Otherwise a rank sees its own only.
    """
    own = peers[membership.index].gpus
    here = [
        peer.gpus
        for role, host, peer in zip(membership.roles, membership.hosts, peers, strict=True)
        if host == membership.hosts[membership.index] and role != Role.SERVER
    ]
    together = [device for devices in here for device in devices]
    one_each = all(len(devices) == 1 for devices in here) and len(set(together)) == len(together)
    if membership.role != Role.SERVER and one_each:
        return tuple(together), membership.local_rank
    return own, 0 if own else None


def newest_checkpoint(root: Path) -> str:
    """Return the name of the newest checkpoint under a root, empty if there is none; a look at names is enough."""
    try:
        numbered = {int(name.partition("-")[0]): name for name in os.listdir(root) if name[:1].isdigit()}
    except OSError:
        return ""
    return numbered[max(numbered)] if numbered else ""
