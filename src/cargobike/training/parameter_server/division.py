"""Divides parameters among servers: whole parameters, so that every server holds about as many bytes."""

from __future__ import annotations

from collections.abc import Sequence

from cargobike.training.parameter_server.messages import TensorSpec


def divide(tensors: Sequence[TensorSpec], servers: int) -> list[list[TensorSpec]]:
    """Give each parameter, the largest first, to the server that has least so far; the same in every worker.

    Example:
        >>> a, b, c = TensorSpec("a", (10,)), TensorSpec("b", (6,)), TensorSpec("c", (5,))
        >>> [[spec.name for spec in part] for part in divide([a, b, c], 2)]
        [['a'], ['b', 'c']]
    """
    parts: list[list[TensorSpec]] = [[] for _ in range(servers)]
    sizes = [0] * servers
    order = {spec.name: position for position, spec in enumerate(tensors)}
    for spec in sorted(tensors, key=lambda spec: (-spec.size, order[spec.name])):
        least = sizes.index(min(sizes))
        parts[least].append(spec)
        sizes[least] += spec.size
    return [sorted(part, key=lambda spec: order[spec.name]) for part in parts]
