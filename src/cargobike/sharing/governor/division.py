"""One rate divided among several: fairly, and without leaving over what another could use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

Key = TypeVar("Key")


def divide(total: float | None, wishes: Mapping[Key, float]) -> dict[Key, float]:
    """Return what each gets of a total: nobody more than wished, and whoever gets less gets as much as any other.

    Args:
        total: What there is; None where there is enough for all.
        wishes: The most that each can use.
    """
    if total is None:
        return dict(wishes)
    shares: dict[Key, float] = {}
    left = max(0.0, total)
    for number, (key, wish) in enumerate(sorted(wishes.items(), key=lambda item: item[1])):
        shares[key] = min(wish, left / (len(wishes) - number))
        left -= shares[key]
    return shares


def allot(total: float | None, wishes: Mapping[Key, float]) -> dict[Key, float]:
    """Return what each may use: its share, and on top what is left over, since wishes change at any moment.

    Args:
        total: What there is; None where there is enough for all.
        wishes: The most that each can use now.
    """
    if total is None:
        return dict.fromkeys(wishes, math.inf)
    shares = divide(total, wishes)
    left = max(0.0, total - sum(shares.values()))
    return {key: share + left for key, share in shares.items()}
