"""Behind `experiment.allreduce` and `experiment.parameter_server`: experiments with one trial and one gang."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.plain import check_plain
from cargobike.engines.local.boot import Boot
from cargobike.experiments.asking.arguments import at_least_one
from cargobike.experiments.asking.launching import launch_experiment
from cargobike.experiments.results.result import Result
from cargobike.experiments.scheduling.plan import GangShape
from cargobike.training.server_options import check_options

PARAMETER_SERVER = "cargobike.training.parameter_server:serve"
_ROLES = ("chief", "worker", "ps", "evaluator")
_ONE_TRIAL: Mapping[str, Any] = {
    "space": None,
    "optimizer": None,
    "num_trials": None,
    "direction": None,
    "constraints": (),
    "start_points": (),
    "warm_start": (),
    "early_stop": None,
    "isolation": "fresh",
    "deterministic": False,
    "max_failures": None,
    "trial_timeout_s": None,
    "versioned_resources": (),
}
"""What `experiment.launch` takes and a single distributed run has no use for."""


def launch_allreduce(
    boot: Boot | None,
    *,
    params: Mapping[str, Any] | None,
    workers: int | tuple[int, int] | None,
    roles: Mapping[str, int] | None,
    **given: Any,
) -> Result:
    """Run one function on a gang; takes what `experiment.allreduce` takes."""
    shape = _of_roles(roles, workers) if roles is not None else _of_workers(workers)
    return launch_experiment(boot, params=dict(params or {}), gang=shape, workers=shape.size, **_ONE_TRIAL, **given)


def launch_parameter_server(
    boot: Boot | None,
    *,
    params: Mapping[str, Any] | None,
    workers: int | None,
    servers: int,
    options: Mapping[str, Any],
    **given: Any,
) -> Result:
    """Run one function on a gang with servers; takes what `experiment.parameter_server` takes."""
    size = None if workers is None else at_least_one("workers", workers)
    check_plain(options, InvalidInputError)
    check_options(options)
    return launch_experiment(
        boot,
        params=dict(params or {}),
        gang=GangShape(size=size, servers=at_least_one("servers", servers)),
        workers=size,
        server=PARAMETER_SERVER,
        options=dict(options),
        **_ONE_TRIAL,
        **given,
    )


def _of_workers(workers: int | tuple[int, int] | None) -> GangShape:
    if workers is None:
        return GangShape()
    if isinstance(workers, int):
        return GangShape(size=at_least_one("workers", workers))
    if not 1 <= at_least_one("workers", workers[0]) <= at_least_one("workers", workers[1]):
        raise InvalidInputError(
            f"workers={workers!r} was given; allowed are a number, or the least and the most of them, such as (2, 8)."
        )
    return GangShape(size=workers[1], least=workers[0])


def _of_roles(roles: Mapping[str, int], workers: object) -> GangShape:
    """Return a gang whose members TensorFlow calls by different names; rank 0 is the chief, or the first worker."""
    mistakes = [
        f"{role!r} is no role of TensorFlow's; allowed are {', '.join(map(repr, _ROLES))}.{nearest(role, _ROLES)}"
        for role in roles
        if role not in _ROLES
    ]
    mistakes += [
        f"{role}={count!r}; give a whole number of at least 1"
        for role, count in roles.items()
        if type(count) is not int or count < 1
    ]
    if workers is not None:
        mistakes.append(f"workers={workers!r} besides; the roles say how many there are")
    if not mistakes and roles.get("chief", 1) > 1:
        mistakes.append("there can be one chief only")
    if not mistakes and not ("chief" in roles or "worker" in roles):
        mistakes.append("there is neither a chief nor a worker among them")
    if mistakes:
        raise InvalidInputError("roles= cannot be used.", mistakes)
    names = tuple(role for role in _ROLES for _ in range(roles.get(role, 0)))
    return GangShape(size=len(names), roles=names)
