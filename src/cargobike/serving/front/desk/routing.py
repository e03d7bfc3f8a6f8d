"""Which version answers a request: by shares, by a key, or as asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from cargobike.serving.wire import Route


def share_of(key: Any) -> float:
    """Return a number from 0 to 1 for a key: equal keys, equal numbers, on every machine and in every process."""
    digest = blake2b(msgspec.json.encode(key), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def choose(routes: Sequence[Route], share: float, there: Collection[int]) -> int:
    """Return the version that answers: by share among the routes whose versions are there; 0 if there is no route.

    A version that has no replica is passed over, so that a canary that dies costs no request. If none is there, the
    share decides among all: requests wait for replicas of that version.

    Example:
        >>> choose([Route(3, 0.9), Route(4, 0.1)], 0.95, {3, 4}), choose([Route(3, 0.9), Route(4, 0.1)], 0.95, {3})
        (4, 3)
    """
    if len(routes) == 1:
        return routes[0].version
    open_routes = [route for route in routes if route.weight > 0 and route.version in there]
    if not open_routes:
        open_routes = [route for route in routes if route.weight > 0] or list(routes)
    if not open_routes:
        return 0
    mark = share * sum(route.weight for route in open_routes)
    for route in open_routes:
        mark -= route.weight
        if mark < 0:
            return route.version
    return open_routes[-1].version
