"""Ranks of JAX meet at a coordinator in rank 0."""

from __future__ import annotations

from cargobike.experiments.trial.meeting.way import Offer, Party, Ports, Way


class Jax(Way):
    """Rank 0 holds a port for the coordinator."""

    name = "jax"

    def offer(self, ports: Ports, *, leads: bool, world_size: int) -> Offer:
        """Hold a port in rank 0."""
        return Offer(ports.hold() if leads else 0)

    def variables(self, party: Party) -> dict[str, str]:
        """Return what `jax.distributed.initialize` reads."""
        coordinator = party.first.endpoint(self.name)
        return {
            "JAX_COORDINATOR_ADDRESS": coordinator,
            "JAX_COORDINATOR_BIND_ADDRESS": coordinator,
            "JAX_NUM_PROCESSES": str(party.here.world_size),
            "JAX_PROCESS_ID": str(party.here.rank),
        }
