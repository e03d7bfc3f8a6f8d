"""Which node of a cluster does what: parameter servers first, then the chief, the evaluator, and the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.words import count

FED = ("chief", "master", "worker")
"""Roles of nodes that rows are fed to; the others end when these have."""


class Role(msgspec.Struct, frozen=True):
    """What a node is called in a cluster."""

    job_name: str
    task_index: int

    @property
    def name(self) -> str:
        """What people call it, such as `worker:0`."""
        return f"{self.job_name}:{self.task_index}"

    @property
    def is_fed(self) -> bool:
        """Whether rows are fed to it, and its end is waited for."""
        return self.job_name in FED


def assign_roles(num_executors: int, num_ps: int, master_node: str | None, *, eval_node: bool) -> list[Role]:
    """Return the role of each node, in the order of their executor ids.

    Raises:
        InvalidInputError: If there can be no such cluster.

    Example:
        >>> [role.name for role in assign_roles(4, 1, "chief", eval_node=False)]
        ['ps:0', 'chief:0', 'worker:0', 'worker:1']
    """
    mistakes = [
        f"{name}={value!r} was given; give a whole number of at least {least}"
        for name, value, least in (("num_executors", num_executors, 1), ("num_ps", num_ps, 0))
        if type(value) is not int or value < least
    ]
    if master_node is not None and master_node not in ("chief", "master"):
        mistakes.append(f"master_node={master_node!r} was given; TensorFlow knows 'chief' and 'master'")
    if mistakes:
        raise InvalidInputError("There can be no such cluster.", mistakes)
    others = num_ps + (master_node is not None) + bool(eval_node)
    workers = num_executors - others
    if workers < 0 or (workers == 0 and master_node is None):
        needed = others + (1 if master_node is None else 0)
        raise InvalidInputError(
            f"num_executors={num_executors} was given, but the cluster needs at least {count(needed, 'node')}: "
            f"num_ps={num_ps}, master_node={master_node!r}, eval_node={eval_node!r}, and a chief or worker."
        )
    groups = [("ps", num_ps), (master_node or "", int(master_node is not None))]
    groups += [("evaluator", int(bool(eval_node))), ("worker", workers)]
    return [Role(name, index) for name, size in groups for index in range(size)]


def cluster_spec(roles: Sequence[Role], addresses: Sequence[str]) -> dict[str, list[str]]:
    """Return the addresses of the nodes by role, as TensorFlow describes a cluster."""
    spec: dict[str, list[str]] = {}
    for role, address in zip(roles, addresses, strict=True):
        spec.setdefault(role.job_name, []).append(address)
    return spec


def count_workers(spec: Mapping[str, Sequence[str]]) -> int:
    """Return how many nodes of a cluster train."""
    return sum(len(spec.get(name, ())) for name in FED)
