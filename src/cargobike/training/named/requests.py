"""What a rank says about an operation that it wants to do with others."""

from __future__ import annotations

from typing import Final

import msgspec

KINDS: Final = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier", "join", "add", "remove")
OPERATIONS: Final = ("average", "sum", "adasum", "min", "max", "product")

FORESEEN: Final = ("allreduce", "broadcast", "reducescatter", "barrier")
"""Kinds of which nothing is to be decided if ranks ask for the same."""

WORLD: Final = 0
"""The id of the set of all ranks."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """One operation of one rank; ranks that give the same `name` in the same set do it together.

    Attributes:
        name: Begins with the kind, so that an allreduce and a broadcast may be called the same.
        kind: One of `KINDS`.
        shapes: One for each tensor: several are done together, all or none.
        dtypes: One for each tensor, as torch prints it.
        of: Id of the set of ranks.
        op: One of `OPERATIONS`, for those that reduce.
        root: For `broadcast`: rank in the whole gang.
        scales: What is multiplied before and after a reduction.
        splits: For `alltoall`: how many rows go to each rank of the set.
        device: `cpu` or `cuda`.
        ranks: For `add`: the ranks of the new set.
        sole: Whether the rank had nothing else on its way; see `talking`.
    """

    name: str
    kind: str
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    of: int = WORLD
    op: str = ""
    root: int = 0
    scales: tuple[float, float] = (1.0, 1.0)
    splits: tuple[int, ...] = ()
    device: str = "cpu"
    ranks: tuple[int, ...] = ()
    sole: bool = False


class Agreed(msgspec.Struct, frozen=True, array_like=True):
    """What all ranks of a set do next.

    Attributes:
        request: What they asked for.
        rows: First dimensions by rank of the set, one tuple for each tensor; for `allgather`.
        splits: Of all ranks, by rank of the set; for `alltoall`.
        joined: Ranks that take part with zeros because they have no more data.
        error: Why it cannot be done; it is then done by none.
        last: For `join`: who came last. For `add`: the id of the set.
        is_foreseen: Whether ranks know it without being told; see `talking`.
        is_decided: False for what is only a request of rank 0 that it lets others know of.
    """

    request: Request
    rows: tuple[tuple[int, ...], ...] = ()
    splits: tuple[tuple[int, ...], ...] = ()
    joined: tuple[int, ...] = ()
    error: str = ""
    last: int = 0
    is_foreseen: bool = False
    is_decided: bool = True
