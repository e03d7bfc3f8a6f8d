"""How the ranks of a gang find each other, whatever framework they use.

Each member binds the ports that its framework will listen on, tells the others, and holds them until it ends. Bound
with `SO_REUSEADDR` and not listening, a port is out of everybody else's reach, while the framework, which binds with
the same option (torch, and gRPC under TensorFlow and JAX), can open it in the same process at any time: no port is ever
free between being chosen and being used. The torch store is even open before others learn its address.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.errors import WaitError
from cargobike.core.member import Role
from cargobike.experiments.trial.context import TrialContext
from cargobike.experiments.trial.gang import PATIENCE_S
from cargobike.experiments.trial.messages import Membership
from cargobike.experiments.trial.process_groups import keep_existing_groups, keep_process_groups

_SIOCGIFADDR = 0x8915
_LEAVE_S = 1.0
_MEET_S = 120.0
_VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


class Seen(msgspec.Struct, frozen=True):
    """What a member tells the others about itself.

    Attributes:
        address: Where its ports are.
        torch: Port of the torch store, of rank 0.
        has_store: Whether the torch store is open already.
        tensorflow: Port of its TensorFlow server.
        jax: Port of the JAX coordinator, of rank 0.
        gpus: The devices that its worker was given.
        checkpoint: The newest checkpoint that rank 0 sees: what all of them begin with.
    """

    address: str
    torch: int
    has_store: bool
    tensorflow: int
    jax: int
    gpus: tuple[str, ...]
    checkpoint: str


_decode = msgspec.msgpack.Decoder(Seen).decode


class Meeting:
    """What has to live as long as the train function runs: sockets that are held, and the store."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._held: list[socket.socket] = []
        self.store: Any = None

    def leave(self, place: TrialContext) -> None:
        """Let the others finish with the store, for a moment: some may just have come out of their last collective.

        No longer: one that waits for a rank that has returned should learn that now.
        """
        keep_existing_groups()
        if place.world_size > 1:
            place.gang.publish("returned", b"")
        if self.store is not None and place.world_size > 1:
            with contextlib.suppress(WaitError):
                place.gang.gather("returned", of="workers", timeout_s=_LEAVE_S)

    def hold_port(self) -> int:
        """Bind a port that only this process can listen on."""
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))  # on all addresses, as gRPC will
        self._held.append(holder)
        return int(holder.getsockname()[1])

    def open_store(self, world_size: int) -> int:
        """Open a torch store on a socket that listens already, so that nobody who comes early is turned away."""
        distributed = sys.modules["torch.distributed"]
        listener = socket.socket()
        listener.bind((self._address, 0))
        listener.listen(socket.SOMAXCONN)
        port = int(listener.getsockname()[1])
        self.store = distributed.TCPStore(
            self._address, port, world_size, True, wait_for_workers=False, master_listen_fd=listener.detach()
        )
        return port


def meet(place: TrialContext, gpus: tuple[str, ...]) -> Meeting:
    """Find the other members, and tell every framework through the environment where they are."""
    membership = place.membership
    assert membership is not None
    meeting = Meeting(place.gang.address)
    leads = membership.index == 0
    has_torch = keep_process_groups()
    own = Seen(
        address=place.gang.address,
        torch=0 if not leads else meeting.open_store(place.world_size) if has_torch else meeting.hold_port(),
        has_store=leads and has_torch,
        tensorflow=meeting.hold_port(),
        jax=meeting.hold_port() if leads else 0,
        gpus=gpus,
        checkpoint=newest_checkpoint(place.checkpoints_root) if leads else "",
    )
    patience_s = max(_MEET_S, membership.stall_timeout_s or PATIENCE_S)  # imports take as long as they take
    told = place.gang.exchange("rendezvous", msgspec.msgpack.encode(own), timeout_s=patience_s)
    everybody = [_decode(value) for value in told]
    if membership.role != Role.SERVER:
        place.began_with = everybody[0].checkpoint
    visible, place.device_index = _share_devices(membership, everybody)
    for variable in _VISIBLE_DEVICES:
        os.environ[variable] = ",".join(visible)
    if membership.role != Role.SERVER:
        os.environ.update(variables(place, membership, everybody))
    interface = interface_of(own.address)
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        os.environ.setdefault("TP_SOCKET_IFNAME", interface)
    return meeting


def variables(place: TrialContext, membership: Membership, everybody: list[Seen]) -> dict[str, str]:
    """Return what torch, TensorFlow and JAX read from the environment."""
    first = everybody[0]
    hosts = list(dict.fromkeys(membership.hosts))
    found = {
        "MASTER_ADDR": first.address,
        "MASTER_PORT": str(first.torch),
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.world_size),
        "LOCAL_RANK": str(place.local_rank),
        "LOCAL_WORLD_SIZE": str(place.local_world_size),
        "GROUP_RANK": str(hosts.index(membership.hosts[membership.index])),
        "GROUP_WORLD_SIZE": str(len(hosts)),
        "ROLE_NAME": membership.role,
        "ROLE_RANK": str(place.rank),
        "ROLE_WORLD_SIZE": str(place.world_size),
        "TORCHELASTIC_RUN_ID": f"{place.id}-{place.attempt}",
        "TORCHELASTIC_RESTART_COUNT": str(place.attempt - 1),
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TF_CONFIG": json.dumps(tensorflow_config(membership, everybody)),
        "JAX_COORDINATOR_ADDRESS": f"{first.address}:{first.jax}",
        "JAX_COORDINATOR_BIND_ADDRESS": f"{first.address}:{first.jax}",
        "JAX_NUM_PROCESSES": str(place.world_size),
        "JAX_PROCESS_ID": str(place.rank),
    }
    if first.has_store:
        found["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    return found


def tensorflow_config(membership: Membership, everybody: list[Seen]) -> Mapping[str, Any]:
    """Return the cluster as TensorFlow describes it, with our own place in it."""
    cluster: dict[str, list[str]] = {}
    task: dict[str, Any] = {}
    for index, (role, seen) in enumerate(zip(membership.roles, everybody, strict=True)):
        if role == Role.SERVER:
            continue
        members = cluster.setdefault(role, [])
        if index == membership.index:
            task = {"type": role, "index": len(members)}
        members.append(f"{seen.address}:{seen.tensorflow}")
    return {"cluster": cluster, "task": task}


def _share_devices(membership: Membership, everybody: list[Seen]) -> tuple[tuple[str, ...], int | None]:
    """Return the GPUs that this rank may see, and which of them is its own.

    Code for torchrun takes the device with the number of its local rank. Where each rank on a host has one GPU, all
    of them are therefore visible to each, in that order. Otherwise a rank sees its own only.
    """
    own = everybody[membership.index].gpus
    here = [
        seen.gpus
        for role, host, seen in zip(membership.roles, membership.hosts, everybody, strict=True)
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


def interface_of(address: str) -> str:
    """Return the name of the network interface with this address, empty if it cannot be told."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no such address
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return "lo" if address.startswith("127.") else ""
