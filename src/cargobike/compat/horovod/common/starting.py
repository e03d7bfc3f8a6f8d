"""Which rank of which job this process is: what `init` reads."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cargobike.compat.horovod.common.regrouped import meet_regrouped
from cargobike.core.errors import InvalidInputError
from cargobike.training import process_group
from cargobike.training.named.engine import STALL_S, WARN_S
from cargobike.training.process_group import Group


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank stands: in the job, on its host, and among the ranks with its number on other hosts."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    is_homogeneous: bool


def meet(timeout_s: float | None = None, on_broken: Callable[[str], None] | None = None) -> Group:
    """Meet the ranks of the job that the environment describes: a gang of ours, torchrun's, or that of horovodrun."""
    regrouped = meet_regrouped(on_broken)
    if regrouped is not None:
        return regrouped
    variables = os.environ
    if "RANK" not in variables and "HOROVOD_RANK" in variables:
        for ours, theirs in (("RANK", "RANK"), ("WORLD_SIZE", "SIZE"), ("LOCAL_RANK", "LOCAL_RANK")):
            if f"HOROVOD_{theirs}" in variables:
                variables.setdefault(ours, variables[f"HOROVOD_{theirs}"])
    return process_group.meet(timeout_s)


def find_place(group: Group, variables: Mapping[str, str]) -> Place:
    """Return where this rank stands; what the launcher has not said, ranks find out from each other's host names."""
    host = variables.get("HOROVOD_HOSTNAME") or socket.gethostname()
    group.store.set(f"host/{group.rank}", host)
    hosts = [bytes(group.store.get(f"host/{rank}")).decode() for rank in range(group.world_size)]
    return place_on_hosts(group.rank, hosts)


def place_on_hosts(rank: int, hosts: Sequence[str]) -> Place:
    """Return where a rank stands if ranks are on these hosts.

    Example:
        >>> place_on_hosts(2, ["a", "a", "b"])
        Place(rank=2, size=3, local_rank=0, local_size=1, cross_rank=1, cross_size=2, is_homogeneous=False)
    """
    local = [other for other, host in enumerate(hosts) if host == hosts[rank]]
    local_rank = local.index(rank)
    by_host: dict[str, list[int]] = {}
    for other, host in enumerate(hosts):
        by_host.setdefault(host, []).append(other)
    cross = [ranks[local_rank] for ranks in by_host.values() if len(ranks) > local_rank]
    return Place(
        rank,
        len(hosts),
        local_rank,
        len(local),
        cross.index(rank),
        len(cross),
        len({len(ranks) for ranks in by_host.values()}) == 1,
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """How long operations wait for ranks that do not submit them."""

    warn_s: float
    stall_s: float


def read_limits(variables: Mapping[str, str]) -> Limits:
    """Read how long to wait from Horovod's own variables.

    Example:
        >>> read_limits({"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "90"})
        Limits(warn_s=60.0, stall_s=90.0)
    """
    warn_s = _read_seconds(variables, "HOROVOD_STALL_CHECK_TIME_SECONDS") or WARN_S
    if variables.get("HOROVOD_STALL_CHECK_DISABLE", "") not in ("", "0"):
        warn_s = float("inf")
    return Limits(warn_s, _read_seconds(variables, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS") or STALL_S)


def _read_seconds(variables: Mapping[str, str], name: str) -> float:
    text = variables.get(name, "0")
    try:
        return max(0.0, float(text))
    except ValueError:
        raise InvalidInputError(f"{name} must be a number of seconds, not {text!r}.") from None
