"""The gangs that `experiment.allreduce` and `experiment.parameter_server` ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cargobike.core.asked import Gang
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.plain import check_plain
from cargobike.experiments.asking.arguments import at_least_one
from cargobike.training.server_options import check_options

_ROLES = ("chief", "worker", "ps", "evaluator")


def gang_of(workers: int | tuple[int, int] | None, roles: Mapping[str, int] | None) -> Gang:
    """Return one gang of all workers, of a fixed or an elastic size, or with roles.

    Raises:
        InvalidInputError: If there can be no such gang.
    """
    if roles is not None:
        return _gang_of_roles(roles, workers)
    if workers is None:
        return Gang(size=None, is_distributed=True)
    if isinstance(workers, int):
        return Gang(size=at_least_one("workers", workers), is_distributed=True)
    if not 1 <= at_least_one("workers", workers[0]) <= at_least_one("workers", workers[1]):
        raise InvalidInputError(
            f"workers={workers!r} was given; allowed are a number, or the least and the most of them, such as (2, 8)."
        )
    return Gang(size=workers[1], least=workers[0], is_distributed=True)


def gang_with_servers(workers: int | None, servers: int, options: Mapping[str, Any]) -> Gang:
    """Return one gang of all workers, with parameter servers.

    Raises:
        InvalidInputError: If there can be no such gang, or servers have no such options.
    """
    size = None if workers is None else at_least_one("workers", workers)
    check_plain(options, InvalidInputError)
    check_options(options)
    return Gang(size=size, servers=at_least_one("servers", servers), is_distributed=True, options=dict(options))


def _gang_of_roles(roles: Mapping[str, int], workers: object) -> Gang:
    """Return a gang whose members have different roles in TensorFlow; rank 0 is the chief, or the first worker."""
    mistakes = [
        f"{role!r} is not a role in TensorFlow; allowed are {', '.join(map(repr, _ROLES))}.{nearest(role, _ROLES)}"
        for role in roles
        if role not in _ROLES
    ]
    mistakes += [
        f"{role}={count!r}; give a whole number of at least 1"
        for role, count in roles.items()
        if type(count) is not int or count < 1
    ]
    if workers is not None:
        mistakes.append(f"workers={workers!r} as well; leave it out, the roles say how many there are")
    if not mistakes and roles.get("chief", 1) > 1:
        mistakes.append("there can be one chief only")
    if not mistakes and not ("chief" in roles or "worker" in roles):
        mistakes.append("there is neither a chief nor a worker among them")
    if mistakes:
        raise InvalidInputError("roles= cannot be used.", mistakes)
    names = tuple(role for role in _ROLES for _ in range(roles.get(role, 0)))
    return Gang(size=len(names), roles=names, is_distributed=True)
