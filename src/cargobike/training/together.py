"""Small things that ranks do together with torch: which rank this is, one rank first, one value of all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from cargobike.core.running.member import current
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.training import collectives, process_group
from cargobike.training.collectives import Operation


def rank() -> int:
    """Return this process's rank; 0 outside a gang."""
    return (process_group.known_group() or current()).rank


def world_size() -> int:
    """Return how many ranks the gang has; 1 outside a gang."""
    return (process_group.known_group() or current()).world_size


def is_main() -> bool:
    """Tell whether this is rank 0, the one that writes files and prints."""
    return rank() == 0


def all_reduce(value: Any, op: Operation = "mean", *, weight: float = 1.0) -> Any:
    """Combine a number or a tensor over all ranks; every rank gets the result and must call this.

    Args:
        value: A number, a dict of named numbers, or a tensor (which is not changed).
        op: `mean`, `sum`, `min` or `max`.
        weight: For `mean`: how much this rank counts, such as the number of samples it has evaluated.

    Raises:
        WaitError: After the deadline; the message names the ranks that are missing.

    Example:
        >>> all_reduce(0.5, weight=100)
        0.5
    """
    process_group.join_group()
    return collectives.all_reduce(value, op, weight=weight)


def barrier(timeout_s: Seconds | None = None) -> None:
    """Wait until all ranks have come here.

    Raises:
        WaitError: After the deadline; the message names the ranks that are missing.
    """
    wait_s = read_seconds("timeout_s", timeout_s, may_be_zero=True) or process_group.join_group().timeout_s
    collectives.barrier("cargobike.torch.barrier", wait_s)


@contextlib.contextmanager
def main_first(timeout_s: Seconds | None = None) -> Iterator[bool]:
    """Run rank 0 first, to download or build what the others then find; gives whether this is rank 0.

    If rank 0 fails inside, the others fail too, after the deadline at the latest.
    """
    read_seconds("timeout_s", timeout_s, may_be_zero=True)  # a wrong one is refused before anything is built
    is_first = process_group.join_group().is_main
    if not is_first:
        barrier(timeout_s)
    yield is_first
    if is_first:
        barrier(timeout_s)
