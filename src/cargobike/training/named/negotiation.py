"""Decides which operation all ranks of a set do next: requests in, decisions out; no clock, no socket, no tensor.

One coordinator, in rank 0, hears every request. When all ranks of a set have asked for the same name, and agree on what
it is, all are told to do it; all hear decisions in the same order, so that none waits in one operation for a rank that
waits in another. Ranks that disagree are all told so, with the ranks named; the name can be used again after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from cargobike.training.named.requests import WORLD, Agreed, Request

Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Decision:
    """What some ranks are told."""

    agreed: Agreed
    ranks: tuple[int, ...]


@dataclass(slots=True)
class _Pending:
    since: float
    requests: dict[int, Request] = field(default_factory=dict)
    was_told: bool = False


class Coordinator:
    """What ranks have asked for and not been told yet."""

    def __init__(self, size: int) -> None:
        self.sets: dict[int, tuple[int, ...]] = {WORLD: tuple(range(size))}
        self._next_set = WORLD + 1
        self._pending: dict[Key, _Pending] = {}
        self._joined: dict[int, None] = {}  # in the order of joining
        self._gone: dict[int, str] = {}
        self._given_up: dict[Key, tuple[set[int], str]] = {}

    def request(self, rank: int, request: Request, now: float) -> list[Decision]:
        """Hear that a rank wants to do something."""
        key = (request.of, request.name)
        if request.of not in self.sets or rank not in self.sets[request.of]:
            return [_refuse(request, f"{request.name}: rank {rank} has no process set {request.of}", (rank,))]
        missed = self._given_up.get(key)
        if missed is not None and rank in missed[0]:
            missed[0].discard(rank)
            if not missed[0]:
                del self._given_up[key]
            return [_refuse(request, f"{missed[1]}; rank {rank} came too late", (rank,))]
        pending = self._pending.setdefault(key, _Pending(now))
        pending.requests[rank] = request
        if request.kind == "join":
            self._joined[rank] = None
            others = [each for each in self._pending if each != key]
            return [decision for each in (*others, key) for decision in self._conclude(each)]
        return self._conclude(key)

    def leave(self, rank: int, why: str) -> list[Decision]:
        """Hear that a rank is gone: what needs it cannot be done any more."""
        if rank in self._gone:
            return []
        self._gone[rank] = why
        self._joined.pop(rank, None)
        for pending in self._pending.values():
            pending.requests.pop(rank, None)
        for key in [key for key, pending in self._pending.items() if not pending.requests]:
            del self._pending[key]
        return [decision for key in list(self._pending) for decision in self._conclude(key)]

    def give_up(self, before: float) -> list[Decision]:
        """Give up what some ranks have waited for since before a point in time."""
        late = [key for key, pending in self._pending.items() if pending.since < before and key[1] != "join.join"]
        return [decision for key in late for decision in self._abandon(key, self._explain(key))]

    def stalled(self, before: float) -> list[str]:
        """Return what ranks have waited for since before a point in time, each once, and who is missing."""
        late = [key for key, pending in self._pending.items() if pending.since < before and not pending.was_told]
        for key in late:
            self._pending[key].was_told = True
        return [self._explain(key) for key in late if key[1] != "join.join"]

    @property
    def oldest(self) -> float | None:
        """Since when the operation that has waited longest has waited."""
        return min((pending.since for pending in self._pending.values()), default=None)

    def _conclude(self, key: Key) -> list[Decision]:
        pending = self._pending[key]
        ranks = self.sets[key[0]]
        first = next(iter(pending.requests.values()))
        gone = [rank for rank in ranks if rank in self._gone]
        if gone:
            why = "; ".join(f"rank {rank} {self._gone[rank]}" for rank in gone)
            return self._abandon(key, f"{first.name} cannot be done: {why}")
        if len(pending.requests) < len(ranks):
            absent = [rank for rank in ranks if rank not in pending.requests]
            if first.kind == "join" or any(rank not in self._joined for rank in absent):
                return []
            if first.kind not in ("allreduce", "barrier"):
                return self._abandon(
                    key,
                    f"{first.name} cannot be done: {name_ranks(absent)} joined, having no more data, and only "
                    f"allreduce goes on without, {first.kind} does not",
                    will_come=False,
                )
        del self._pending[key]
        return [self._decide(key, pending.requests)]

    def _decide(self, key: Key, requests: dict[int, Request]) -> Decision:
        first = next(iter(requests.values()))
        ranks = self.sets[key[0]]
        error = find_disagreement(requests)
        if error:
            return _refuse(first, error, tuple(requests))
        joined = tuple(rank for rank in ranks if rank not in requests)
        ordered = [requests[rank] for rank in ranks if rank in requests]
        if first.kind == "join":
            last = list(self._joined)[-1]
            self._joined.clear()
            return Decision(Agreed(first, last=last), ranks)
        if first.kind == "add":
            number = self._next_set
            self._next_set += 1
            self.sets[number] = first.ranks
            return Decision(Agreed(first, last=number), ranks)
        if first.kind == "remove":
            self.sets.pop(first.root, None)
        if first.kind == "barrier" and joined:
            return Decision(Agreed(first), tuple(requests))
        rows = splits = ()  # type: tuple[tuple[int, ...], ...]
        if first.kind == "allgather":
            rows = tuple(tuple(each.shapes[i][0] for each in ordered) for i in range(len(first.shapes)))
        if first.kind == "alltoall":
            splits = tuple(each.splits for each in ordered)
        foreseen = first.sole and not joined and all(each == first for each in ordered)
        return Decision(Agreed(first, rows, splits, joined, is_foreseen=foreseen), ranks)

    def _abandon(self, key: Key, why: str, *, will_come: bool = True) -> list[Decision]:
        requests = self._pending.pop(key).requests
        missing = {rank for rank in self.sets[key[0]] if rank not in requests and rank not in self._gone}
        if missing and will_come:
            self._given_up[key] = (missing, why)
        return [_refuse(next(iter(requests.values())), why, tuple(requests))]

    def _explain(self, key: Key) -> str:
        pending = self._pending[key]
        missing = [rank for rank in self.sets[key[0]] if rank not in pending.requests and rank not in self._joined]
        text = f"{key[1]}: {name_ranks(pending.requests)} wait{'s' if len(pending.requests) == 1 else ''} for "
        text += f"{name_ranks(missing)}, which did not submit it"
        instead = [
            f"rank {rank} waits for {', '.join(names[:5])}" for rank in missing if (names := self._waiting_of(rank))
        ]
        return f"{text} ({'; '.join(instead)})" if instead else text

    def _waiting_of(self, rank: int) -> list[str]:
        return [name for (_, name), pending in self._pending.items() if rank in pending.requests]


def find_disagreement(requests: dict[int, Request]) -> str:
    """Return in what ranks differ that must be the same, with the ranks named; empty if they agree.

    Example:
        >>> find_disagreement({0: Request("x", "broadcast", root=0), 1: Request("x", "broadcast", root=1)})
        'x: ranks disagree on the root rank: rank 0 has 0; rank 1 has 1'
    """
    first = next(iter(requests.values()))
    if all(request == first for request in requests.values()) and (first.kind != "allgather" or all(first.shapes)):
        return ""
    matters: list[tuple[str, Callable[[Request], object]]] = [
        ("the kind of operation", lambda request: request.kind),
        ("the number of tensors", lambda request: len(request.shapes)),
        ("the data type", lambda request: _one_or_all(request.dtypes)),
        ("the shape", _shape_that_matters),
        ("the reduction (op)", lambda request: request.op),
        ("the factors before and after", lambda request: request.scales),
        ("the root rank", lambda request: request.root),
        ("the device", lambda request: request.device),
        ("the ranks of the set", lambda request: request.ranks),
    ]
    for what, of in matters:
        answers: dict[str, list[int]] = {}
        for rank in sorted(requests):
            answers.setdefault(str(of(requests[rank])), []).append(rank)
        if len(answers) > 1:
            parts = [
                f"{name_ranks(ranks)} ha{'s' if len(ranks) == 1 else 've'} {one}" for one, ranks in answers.items()
            ]
            return f"{first.name}: ranks disagree on {what}: {'; '.join(parts)}"
    return ""


def name_ranks(ranks: Iterable[int]) -> str:
    """Return `rank 1` or `ranks 1, 2`."""
    numbers = sorted(ranks)
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _shape_that_matters(request: Request) -> object:
    """Return shapes without the first dimension, where that may differ."""
    if request.kind in ("allgather", "alltoall"):
        return _one_or_all([("any", *shape[1:]) for shape in request.shapes])
    return _one_or_all(request.shapes)


def _one_or_all(items: Sequence[object]) -> object:
    return items[0] if len(items) == 1 else tuple(items)


def _refuse(request: Request, error: str, ranks: tuple[int, ...]) -> Decision:
    return Decision(Agreed(request, error=error), ranks)
