"""Each worker's place in its gang: who is who, who is where, who shares a host."""

from __future__ import annotations

import secrets

from cargobike.experiments.scheduling.events import Run
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial.gang import SERVER
from cargobike.workers.wire import Membership

_SECRET_BYTES = 32


def memberships(command: Run, plan: Plan) -> list[Membership]:
    """Return the place of each worker of a gang, in their order; the secret is made for this attempt alone."""
    trains = len(command.workers) - command.servers
    roles = (plan.roles or ("worker",) * trains) + (SERVER,) * command.servers
    secret = secrets.token_bytes(_SECRET_BYTES)
    on_host: dict[str, int] = {}
    local_ranks: list[int] = []
    for host in command.hosts[:trains]:
        local_ranks.append(on_host.get(host, 0))
        on_host[host] = local_ranks[-1] + 1
    return [
        Membership(
            index=index,
            roles=roles,
            hosts=command.hosts,
            local_rank=local_ranks[index] if index < trains else 0,
            local_world_size=on_host.get(command.hosts[index], 0),
            secret=secret,
            stall_timeout_s=plan.stall_timeout_s,
        )
        for index in range(len(command.workers))
    ]
