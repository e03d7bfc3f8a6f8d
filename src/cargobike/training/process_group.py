"""Joins the gang's process group when it is first needed, and gives every wait a deadline that names who is missing.

The default group is held by a reference of our own until the process ends: in torch 2.13 the destructor of a gloo group
that runs together with a DDP model's deadlocks (it joins a thread while holding the lock that the thread waits for).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from cargobike.core.errors import WaitError
from cargobike.core.running.member import Member, current
from cargobike.core.values.times import Seconds, read_seconds

DEFAULT_TIMEOUT_S = 300.0
"""How long a collective may take before it fails, unless `timeout_s` says otherwise."""

_ROLL_CALL_S = 5.0
_held: list[Any] = []


@dataclass(frozen=True, slots=True)
class Group:
    """The gang as one rank sees it. Outside a gang: rank 0 of 1, and no process group."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    backend: str = ""
    device: Any = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    store: Any = None

    @property
    def is_main(self) -> bool:
        """Whether this is the rank that writes: rank 0."""
        return self.rank == 0


_joined: tuple[str, Group] | None = None
_rounds = itertools.count()
_generations = itertools.count()
_meetings: Counter[str] = Counter()


def join_group(timeout_s: Seconds | None = None) -> Group:
    """Return the gang's process group, joining it first if need be; gloo on CPU, NCCL on GPU.

    A group that user code has initialised is used as it is.

    Args:
        timeout_s: Deadline of the meeting and of each collective after it; counts only where the group is made.

    Raises:
        WaitError: If not all ranks come in time; the message names those that are missing.
    """
    global _joined
    deadline_s = read_seconds("timeout_s", timeout_s, may_be_zero=True) or DEFAULT_TIMEOUT_S
    member = current()
    if dist.is_initialized():
        if _joined is not None and (_joined[0] == member.meeting or not _is_ours()):
            return _joined[1]
        if _joined is None or not _is_ours():
            _joined = (member.meeting, _adopt(member))
            return _joined[1]
        dist.destroy_process_group()  # that of an earlier trial in this process; `_held` keeps its destructor away
    if member.world_size == 1:
        return Group(device=_device(member))
    _joined = (member.meeting, _make(member, deadline_s))
    return _joined[1]


def meet(timeout_s: Seconds | None = None) -> Group:
    """Return the gang with a part of its store for an exchange of another kind, without making a process group.

    Each call meets anew, in a part of the store of its own: all ranks must call this equally often.

    Raises:
        WaitError: If not all ranks come in time; the message names those that are missing.
    """
    deadline_s = read_seconds("timeout_s", timeout_s, may_be_zero=True) or DEFAULT_TIMEOUT_S
    member = current()
    adopted = dist.is_initialized() and (_joined is None or not _is_ours() or _joined[0] == member.meeting)
    if adopted:
        rank, world_size = dist.get_rank(), dist.get_world_size()
        store = dist.distributed_c10d._get_default_store()
    else:
        rank, world_size = member.rank, member.world_size
        store = dist.HashStore() if world_size == 1 else _connect(member, deadline_s)
    # A launcher that starts the gang again says so in `meeting`: ranks that are new count from 0, as the others do.
    _meetings[member.meeting] += 1
    store = dist.PrefixStore(f"meeting/{member.meeting}/{_meetings[member.meeting]}", store)
    store.set(f"here/{rank}", f"{socket.gethostname()} pid {os.getpid()}")
    _await_ranks(store, "here", world_size, deadline_s, "come to the meeting point")
    return Group(rank, world_size, member.local_rank, "", _device(member), deadline_s, store)


def known_group() -> Group | None:
    """Return the process group if this gang has one, without joining it; `None` if it has none yet."""
    if not dist.is_initialized():
        return None
    is_of_earlier_trial = _is_ours() and _joined is not None and _joined[0] != current().meeting
    return None if is_of_earlier_trial else join_group()


def _is_ours() -> bool:
    return any(dist.group.WORLD is held for held in _held)


def _device(member: Member) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    own = member.device_index
    device = torch.device("cuda", member.local_rank % torch.cuda.device_count() if own is None else own)
    torch.cuda.set_device(device)
    return device


def _adopt(member: Member) -> Group:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    return Group(rank, world_size, member.local_rank, dist.get_backend(), _device(member), store=store)


def _make(member: Member, timeout_s: float) -> Group:
    device = _device(member)
    backend = "nccl" if device.type == "cuda" else "gloo"
    store = _open_store(member, timeout_s)
    store.set(f"here/{member.rank}", f"{socket.gethostname()} pid {os.getpid()}")
    _await_ranks(store, "here", member.world_size, timeout_s, "come to the meeting point")
    dist.init_process_group(
        backend,
        store=dist.PrefixStore("group", store),
        rank=member.rank,
        world_size=member.world_size,
        timeout=timedelta(seconds=timeout_s),
    )
    _held.append(dist.group.WORLD)
    return Group(member.rank, member.world_size, member.local_rank, backend, device, timeout_s, store)


def _open_store(member: Member, timeout_s: float) -> Any:
    """Open the store, in a part of it that no group has had before."""
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    run, attempt = (os.environ.get(name, "0") for name in names)
    # A group that was destroyed has left its keys: the next one must not take them for its own.
    return dist.PrefixStore(f"cargobike/{run}/{attempt}/{next(_generations)}", _connect(member, timeout_s))


def _connect(member: Member, timeout_s: float) -> Any:
    """Connect to the store that torchrun's agent or our own driver holds; where neither does, hold it in rank 0."""
    host, _, port_text = member.meeting_place.rpartition(":")
    port = int(port_text)
    held_elsewhere = os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() in ("true", "1")
    try:
        store = dist.TCPStore(
            host,
            port,
            None,
            member.rank == 0 and not held_elsewhere,
            timeout=timedelta(seconds=timeout_s),
            wait_for_workers=False,
            multi_tenant=True,
        )
    except (RuntimeError, dist.DistError) as error:
        raise WaitError(
            f"Rank {member.rank} of {member.world_size} found no one at the meeting point {host}:{port} within "
            f"{timeout_s:g} s; it is kept by {'the launcher' if held_elsewhere else 'rank 0'}, which may have died: "
            "look for its error first."
        ) from error
    _held.append(store)
    return store


def _await_ranks(store: Any, key: str, world_size: int, timeout_s: float, what: str) -> None:
    """Wait until every rank has set its key."""
    deadline = time.monotonic() + timeout_s
    for rank in range(world_size):
        remaining = max(0.01, deadline - time.monotonic())
        try:
            store.wait([f"{key}/{rank}"], timedelta(seconds=remaining))
        except (RuntimeError, dist.DistError) as error:
            missing = _missing(store, key, world_size)
            raise WaitError(
                f"{_name_ranks(missing)} of {world_size} did not {what} within {timeout_s:g} s. Look at the output of "
                "the missing; if they only need longer, give prepare a larger timeout_s."
            ) from error


def _missing(store: Any, key: str, world_size: int) -> list[int]:
    try:
        return [rank for rank in range(world_size) if not store.check([f"{key}/{rank}"])]
    except (RuntimeError, dist.DistError):
        return []


def _name_ranks(ranks: list[int]) -> str:
    if not ranks:
        return "Some ranks (their meeting point is gone too)"
    return f"Rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def barrier(group: Group, timeout_s: float | None = None) -> None:
    """Wait until all ranks have come here; every rank learns who did not.

    Raises:
        WaitError: After the deadline; the message names the ranks that are missing.
    """
    if group.world_size == 1:
        return
    key = f"barrier/{next(_rounds)}"
    group.store.set(f"{key}/{group.rank}", "here")
    _await_ranks(group.store, key, group.world_size, timeout_s or group.timeout_s, "come to a barrier")


@contextlib.contextmanager
def naming_the_missing(group: Group, what: str) -> Iterator[None]:
    """Turn the failure of a collective into an error that names the ranks that did not fail with it.

    Ranks that take part find out at about the same time; those that do not say so within a few seconds are the cause.

    Raises:
        WaitError: In member of what torch raised.
    """
    key = f"collective/{next(_rounds)}"
    try:
        yield
    except (RuntimeError, dist.DistError) as error:
        missing: list[int] = []
        with contextlib.suppress(RuntimeError, dist.DistError):
            group.store.set(f"{key}/{group.rank}", "failed")
            for rank in range(group.world_size):
                with contextlib.suppress(RuntimeError, dist.DistError):
                    group.store.wait([f"{key}/{rank}"], timedelta(seconds=_ROLL_CALL_S / group.world_size))
            missing = _missing(group.store, key, group.world_size)
        raise WaitError(
            f"Rank {group.rank} could not {what} with the others (deadline {group.timeout_s:g} s). "
            f"{_name_ranks(missing)} did not take part: dead, stuck, or somewhere else in the program. torch said: "
            f"{str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error


def all_reduce_(tensor: torch.Tensor, group: Group, what: str, op: Any = None) -> torch.Tensor:
    """Sum a tensor over all ranks, in member."""
    if group.world_size > 1:
        with naming_the_missing(group, what):
            dist.all_reduce(tensor, op=op or dist.ReduceOp.SUM)
    return tensor


def broadcast_(tensors: list[torch.Tensor], group: Group, what: str) -> None:
    """Give every rank the tensors of rank 0, in member."""
    if group.world_size > 1:
        with naming_the_missing(group, what):
            for tensor in tensors:
                dist.broadcast(tensor, src=0)


_OPERATIONS = {"sum": dist.ReduceOp.SUM, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}


def combine(tensor: torch.Tensor, op: str, weight: float, group: Group) -> torch.Tensor:
    """Return a tensor of all ranks made into one, of the same shape.

    Args:
        tensor: This rank's, which is not changed.
        op: `mean`, `sum`, `min` or `max`.
        weight: How much this rank's counts in a mean.
        group: The ranks.
    """
    tensor = tensor.to(group.device)
    if op != "mean":
        return all_reduce_(tensor.clone(), group, f"find the {op} of a value", op=_OPERATIONS[op])
    if not tensor.is_floating_point():
        tensor = tensor.double()
    parts = torch.cat([(tensor * weight).reshape(-1), tensor.new_tensor([weight])])
    all_reduce_(parts, group, "average a value")
    return (parts[:-1] / parts[-1]).reshape(tensor.shape)
