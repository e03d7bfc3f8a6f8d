"""Ranks of TensorFlow know the whole cluster: one server each, and their own place among them."""

from __future__ import annotations

import json
from typing import Any

from cargobike.core.running.member import Role
from cargobike.experiments.trial.meeting.way import Offer, Party, Ports, Way


class Tensorflow(Way):
    """Every rank holds a port for its server."""

    name = "tensorflow"

    def offer(self, ports: Ports, *, leads: bool, world_size: int) -> Offer:
        """Hold a port."""
        return Offer(ports.hold())

    def variables(self, party: Party) -> dict[str, str]:
        """Return the cluster as TensorFlow describes it, with our own place in it, but without our own servers."""
        membership = party.membership
        cluster: dict[str, list[str]] = {}
        task: dict[str, Any] = {}
        for index, (role, peer) in enumerate(zip(membership.roles, party.peers, strict=True)):
            if role == Role.SERVER:
                continue
            members = cluster.setdefault(role, [])
            if index == membership.index:
                task = {"type": role, "index": len(members)}
            members.append(peer.endpoint(self.name))
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
