"""Adasum: adds what two ranks' gradients have in different directions, averages what they share.

Ranks combine in pairs, then pairs of pairs; each tensor of a flat buffer is combined by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cargobike.training.named.lane import Lane


def combine_adaptively(flat: torch.Tensor, lane: Lane, lengths: Sequence[int], factor: float = 1.0) -> None:
    """Combine the tensors of all ranks, in place, and scale the result; the ranks must be a power of two."""
    group, position, size = lane.group(flat), lane.position, lane.size
    distance = 1
    theirs = torch.empty_like(flat)
    while distance < size:
        peer = position ^ distance
        sending = group.send([flat], peer, distance)
        group.recv([theirs], peer, distance).wait()
        sending.wait()
        first, second = (flat, theirs) if position < peer else (theirs, flat)
        combined = [
            combine_two(a, b) for a, b in zip(first.split(list(lengths)), second.split(list(lengths)), strict=True)
        ]
        flat.copy_(torch.cat(combined))
        distance *= 2
    if factor != 1.0:
        flat.mul_(factor)


def combine_two(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the adaptive sum of two flat tensors.

    Example:
        >>> combine_two(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
        tensor([1., 1.])
        >>> combine_two(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]))
        tensor([1., 0.])
    """
    wide_a, wide_b = a.double(), b.double()
    dot, norm_a, norm_b = wide_a @ wide_b, wide_a @ wide_a, wide_b @ wide_b
    part_a = 1.0 - dot / (2 * norm_a) if norm_a > 0 else torch.ones_like(dot)
    part_b = 1.0 - dot / (2 * norm_b) if norm_b > 0 else torch.ones_like(dot)
    return (part_a * wide_a + part_b * wide_b).to(a.dtype)
