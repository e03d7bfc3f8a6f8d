"""One server's share of the parameters: its values, its version, and who may change it.

A version is one applied gradient. A reader gets the values of exactly one version: while one reads, a gradient
makes the next version in other memory, so that neither readers nor writers wait for each other.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import torch

from cargobike.training.parameter_server.codecs import pack, packed_bytes, unpack
from cargobike.training.parameter_server.messages import Counts, Declare, Pull, Push, Pushed, Refused
from cargobike.training.parameter_server.update_rules import UpdateRule

_SPARE_BUFFERS = 2


@dataclass(eq=False)
class _Version:
    """Memory that holds one version, and how many are reading it."""

    values: torch.Tensor
    readers: int = 0


class RefusedError(Exception):
    """Carries a refusal to the code that answers the worker."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass
class Numbers:
    """What a shard counts."""

    applied: int = 0
    dropped: int = 0
    repeated: int = 0
    restored: int = 0
    delay_sum: int = 0
    delay_max: int = 0


@dataclass
class _Worker:
    rank: int
    clock: int = 0
    connections: int = 0
    last_sequence: int = field(default=-1)


class Shard:
    """The parameters of one server. Safe to use from many threads."""

    def __init__(self, declared: Declare, body: torch.Tensor) -> None:
        self.declared = declared
        self.version = 0
        self.numbers = Numbers()
        self.workers: dict[str, _Worker] = {}
        self.changed = threading.Condition()
        dense = sum(spec.size for spec in declared.tensors if not spec.by_rows)
        values = body.view(torch.float32)
        if values.numel() != sum(spec.size for spec in declared.tensors):
            raise RefusedError(Refused("malformed", "the first values do not fit the shapes declared"))
        self._current = _Version(values[:dense].clone())
        self._spare: list[torch.Tensor] = []
        self.dense_rule = UpdateRule(declared.rule, self._current.values)
        self.row_rules: list[UpdateRule] = []
        for spec in declared.tensors:
            if spec.by_rows:
                self.row_rules.append(
                    UpdateRule(declared.rule, values[dense : dense + spec.size].view(spec.shape).clone())
                )
                dense += spec.size

    @property
    def dense_size(self) -> int:
        """How many numbers come whole."""
        size: int = self._current.values.numel()
        return size

    def enter(self, worker: str, rank: int) -> None:
        """Note that a worker has connected; a new one starts at the pace of the slowest."""
        with self.changed:
            slowest = min((w.clock for w in self.workers.values() if w.connections), default=0)
            known = self.workers.setdefault(worker, _Worker(rank, clock=slowest))
            known.connections += 1

    def leave(self, worker: str) -> None:
        """Note that a worker's connection is gone: the others no longer wait for it."""
        with self.changed:
            if worker in self.workers:
                self.workers[worker].connections -= 1
            self.changed.notify_all()

    def await_turn(self, worker: str, timeout_s: float) -> None:
        """Wait until this worker may go on: after the warm-up, and not too far ahead of the slowest.

        Raises:
            RefusedError: After the deadline; names who is waited for.
        """
        terms = self.declared.terms
        deadline = time.monotonic() + timeout_s
        with self.changed:
            while (reason := self._reason_to_wait(worker)) is not None:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise RefusedError(
                        Refused("waited", f"waited {timeout_s:g} s for {reason} (staleness={terms.staleness})")
                    )
                self.changed.wait(min(remaining, 1.0))

    def _reason_to_wait(self, worker: str) -> str | None:
        terms, me = self.declared.terms, self.workers[worker]
        if me.rank != 0 and self.version < terms.warmup_steps:
            return f"worker 0 to finish the warm-up: it is at step {self.version} of {terms.warmup_steps}"
        if terms.staleness is None or terms.on_stale != "wait":
            return None
        others = [w for name, w in self.workers.items() if name != worker and w.connections]
        slowest = min(others, key=lambda w: w.clock, default=None)
        if slowest is not None and me.clock - slowest.clock > terms.staleness:
            return f"worker {slowest.rank}, which has made {slowest.clock} steps; worker {me.rank} {me.clock}"
        return None

    def push(self, worker: str, message: Push, body: torch.Tensor) -> tuple[Pushed, torch.Tensor]:
        """Take a gradient; return what became of it, and what is left of the body."""
        length = packed_bytes(message.codec, self.dense_size, message.count)
        dense = unpack(message.codec, body[:length], self.dense_size, message.count) if length else None
        rows, rest = self._read_rows(message.rows, body[length:])
        with self.changed:
            me = self.workers[worker]
            delay = max(0, self.version - message.base_version)
            if message.sequence <= me.last_sequence:
                self.numbers.repeated += 1
                return Pushed(True, self.version, delay), rest
            me.last_sequence = message.sequence
            me.clock += 1
            terms = self.declared.terms
            is_stale = terms.staleness is not None and terms.on_stale == "drop" and delay > terms.staleness
            if is_stale:
                self.numbers.dropped += 1
            else:
                self._apply(message, delay, dense, rows)
            self.changed.notify_all()
            return Pushed(not is_stale, self.version, delay), rest

    def _apply(
        self,
        message: Push,
        delay: int,
        dense: torch.Tensor | None,
        rows: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        lr = self.declared.rule.lr if message.lr is None else message.lr
        if self.declared.terms.scale_by_delay:
            lr /= 1 + delay
        if dense is not None:
            self._apply_dense(dense, lr)
        for rule, (indices, values) in zip(self.row_rules, rows, strict=True):
            if len(indices):
                rule.apply_rows(indices, values, lr)
        self.version += 1
        self.numbers.applied += 1
        self.numbers.delay_sum += delay
        self.numbers.delay_max = max(self.numbers.delay_max, delay)

    def _apply_dense(self, gradient: torch.Tensor, lr: float) -> None:
        if self._current.readers == 0:
            self.dense_rule.apply(gradient, lr)
            return
        target = self._spare.pop() if self._spare else torch.empty_like(self._current.values)
        self.dense_rule.apply(gradient, lr, target)
        self._current = _Version(target)

    def _read_rows(
        self, counts: tuple[int, ...], body: torch.Tensor
    ) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], torch.Tensor]:
        if len(counts) != len(self.row_rules):
            raise RefusedError(Refused("malformed", f"{len(counts)} sets of rows for {len(self.row_rules)} tensors"))
        found = []
        for rule, count in zip(self.row_rules, counts, strict=True):
            indices, body = self._read_indices(rule, count, body)
            width = rule.weights[0].numel() if len(rule.weights) else 0
            values = body[: 4 * count * width].clone().view(torch.float32).view(count, *rule.weights.shape[1:])
            found.append((indices, values))
            body = body[4 * count * width :]
        return found, body

    @staticmethod
    def _read_indices(rule: UpdateRule, count: int, body: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        indices = body[: 8 * count].clone().view(torch.int64)
        if len(indices) != count or (count and not 0 <= int(indices.min()) <= int(indices.max()) < len(rule.weights)):
            raise RefusedError(Refused("malformed", f"row numbers must be below {len(rule.weights)}"))
        return indices, body[8 * count :]

    @contextlib.contextmanager
    def reading(self, message: Pull, body: torch.Tensor) -> Iterator[tuple[int, list[torch.Tensor]]]:
        """Give a version's number and its values, packed; they stay as they are until the block ends."""
        with self.changed:
            version, current = self.version, self._current
            current.readers += 1
            pieces = []
            wanted = message.rows or (None,) * len(self.row_rules)
            for rule, count in zip(self.row_rules, wanted, strict=True):
                if count is None:
                    pieces.append(rule.weights.clone())
                else:
                    indices, body = self._read_indices(rule, count, body)
                    pieces.append(rule.weights[indices])
        try:
            yield version, [*pack(message.codec, current.values).pieces, *pieces]
        finally:
            with self.changed:
                current.readers -= 1
                if current.readers == 0 and current is not self._current and len(self._spare) < _SPARE_BUFFERS:
                    self._spare.append(current.values)

    def counts(self) -> Counts:
        """Return what was counted so far."""
        with self.changed:
            fields = {name: getattr(self.numbers, name) for name in Numbers.__dataclass_fields__}
            return Counts(True, self.version, **fields)

    def same_as(self, other: Declare) -> bool:
        """Tell whether another worker means the same parameters."""
        return msgspec.structs.replace(other, rule=self.declared.rule, terms=self.declared.terms) == self.declared
