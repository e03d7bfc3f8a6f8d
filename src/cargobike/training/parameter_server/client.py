"""The worker's side of a parameter server: `pull`, backward, `push`."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import torch

from cargobike.core.errors import InvalidInputError, WaitError
from cargobike.training.parameter_server.codecs import memory_of
from cargobike.training.parameter_server.division import divide
from cargobike.training.parameter_server.holding import Holding
from cargobike.training.parameter_server.link import Link
from cargobike.training.parameter_server.messages import (
    Ask,
    Bye,
    Counts,
    Declare,
    Hello,
    Parameters,
    Pull,
    Push,
    Pushed,
    Rule,
    TensorSpec,
    Terms,
)
from cargobike.training.parameter_server.serving import Server
from cargobike.training.server_options import read_codec
from cargobike.training.traffic import Traffic

_POLL_S = 0.02


class ParameterClient:
    """A worker's access to the parameters that servers hold. Made by `parameter_client`.

    Attributes:
        traffic: What this worker has sent: gradients, against what they would be uncompressed.
        applied: How many of this worker's gradients were applied, by all servers.
        dropped: How many were too stale for at least one server.
        delay: How many versions old the last gradient was, at the server where it was oldest.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        addresses: Sequence[Callable[[], str]],
        secret: bytes,
        *,
        rank: int,
        rule: Rule,
        terms: Terms,
        compression: str | None,
        parameter_compression: str | None,
        timeout_s: float,
        learning_rate: Callable[[], float | None] = lambda: None,
    ) -> None:
        codec = read_codec(compression)
        self._parameter_codec, _ = read_codec(parameter_compression, for_parameters=True)
        self._codec = codec[0]
        parameters, specs = _describe(model)
        self._holdings = [Holding(part, parameters, codec) for part in divide(specs, len(addresses))]
        self._rule, self._terms, self._timeout_s = rule, terms, timeout_s
        self._learning_rate = learning_rate
        self._sequence = 0
        self._local_server: Server | None = None
        hello = Hello(f"{rank}-{os.getpid()}-{secrets.token_hex(4)}", rank)
        self._links = [
            Link(i, find, secret, hello, timeout_s=timeout_s, on_undeclared=self._declare)
            for i, find in enumerate(addresses)
        ]
        self.rank = rank
        self.traffic = Traffic()
        self.applied = self.dropped = self.delay = 0
        try:
            self._start()
        except BaseException:
            for link in self._links:
                link.close()
            raise

    def _start(self) -> None:
        """Agree on what servers hold: worker 0 tells them, the others check that their model is the same."""
        deadline = time.monotonic() + self._timeout_s
        for link in self._links:
            counts = link.connect(deadline)
            while self.rank != 0 and not counts.is_declared:
                if time.monotonic() > deadline:
                    raise WaitError(f"Worker 0 has told {link.name} nothing within {self._timeout_s:g} s.")
                time.sleep(_POLL_S)
                link.send(Ask())
                reply = link.receive()
                assert isinstance(reply, Counts)
                counts = reply
            self._declare(link)
        self.pull()
        for holding in self._holdings:
            holding.clear_gradients()

    def _declare(self, link: Link) -> None:
        holding = self._holdings[link.index]
        specs = [s for s in holding.specs if not s.by_rows] + [s for s in holding.specs if s.by_rows]
        link.send(Declare(tuple(specs), self._rule, self._terms), holding.first_values())
        link.receive()

    def pull(self, rows: Mapping[str, torch.Tensor] | None = None) -> None:
        """Take over the servers' newest parameters.

        Args:
            rows: For embeddings with `sparse=True`: by parameter name, the rows that are needed next. Without it the
                whole table comes.

        Raises:
            WaitError: If a server does not answer in time, or, with `on_stale="wait"`, the slowest worker is too slow.
        """
        wanted = [self._wanted(holding, rows) for holding in self._holdings]
        for link, want in zip(self._links, wanted, strict=True):
            link.send(self._pull(want), _row_numbers(want))
        for link, holding, want in zip(self._links, self._holdings, wanted, strict=True):
            reply = link.receive(self._reader(holding, want))
            assert isinstance(reply, Parameters)
            holding.version = reply.version

    def push(self) -> bool:
        """Send the gradients of the last backward pass and clear them; tell whether all servers have applied them."""
        return self._push(None)

    def step(self, rows: Mapping[str, torch.Tensor] | None = None) -> bool:
        """Push and pull in one round trip; tell whether all servers have applied the gradients."""
        return self._push([self._wanted(holding, rows) for holding in self._holdings])

    def _push(self, wanted: list[list[torch.Tensor | None]] | None) -> bool:
        self._sequence += 1
        kept = []
        for index, (link, holding) in enumerate(zip(self._links, self._holdings, strict=True)):
            packed = holding.pack_gradients()
            touched = holding.rows_touched()
            body = [*packed.pieces, *(tensor for pair in touched for tensor in pair)]
            pieces = [memory_of(tensor) for tensor in body]
            message = Push(
                holding.version,
                self._sequence,
                self._codec,
                packed.count,
                tuple(len(indices) for indices, _ in touched),
                self._learning_rate(),
                None if wanted is None else self._pull(wanted[index]),
            )
            raw = holding.gradients.nbytes + sum(p.numel() * 4 for p in holding.by_rows)
            self.traffic.add(sum(len(piece) for piece in pieces), raw, rounds=int(index == 0))
            link.send(message, [*pieces, *(_row_numbers(wanted[index]) if wanted is not None else [])])
            kept.append(body)  # memory that may have to be sent again
            holding.clear_gradients()  # while the server is at work
        is_applied = True
        self.delay = 0
        for index, (link, holding) in enumerate(zip(self._links, self._holdings, strict=True)):
            reply = link.receive(self._reader(holding, wanted[index])) if wanted is not None else link.receive()
            assert isinstance(reply, Pushed)
            if wanted is not None:
                holding.version = reply.version
            is_applied &= reply.is_applied
            self.delay = max(self.delay, reply.delay)
        self.applied += is_applied
        self.dropped += not is_applied
        return is_applied

    def _pull(self, wanted: list[torch.Tensor | None]) -> Pull:
        counts = tuple(None if rows is None else len(rows) for rows in wanted)
        return Pull(self._parameter_codec, counts, self._timeout_s)

    def _reader(self, holding: Holding, wanted: list[torch.Tensor | None]) -> Callable[[Any, int], None]:
        return lambda channel, length: holding.receive(channel, length, self._parameter_codec, wanted)

    def _wanted(self, holding: Holding, rows: Mapping[str, torch.Tensor] | None) -> list[torch.Tensor | None]:
        if not rows:
            return [None] * len(holding.by_rows)
        known = [spec.name for h in self._holdings for spec in h.specs if spec.by_rows]
        unknown = [name for name in rows if name not in known]
        if unknown:
            raise InvalidInputError(f"rows are for embeddings with sparse=True ({', '.join(known)}), not {unknown}.")
        names = [spec.name for spec in holding.specs if spec.by_rows]
        return [rows[name].reshape(-1).unique().long().cpu() if name in rows else None for name in names]

    def counts(self) -> list[Counts]:
        """Ask every server for its counts: version, gradients applied, dropped, repeated, their delays."""
        for link in self._links:
            link.send(Ask())
        replies = [link.receive() for link in self._links]
        return [reply for reply in replies if isinstance(reply, Counts)]

    @property
    def reconnects(self) -> int:
        """How often a server had to be found again."""
        return sum(link.connects - 1 for link in self._links)

    def close(self) -> None:
        """Say goodbye: the others do not wait for this worker any more."""
        for link in self._links:
            link.send(Bye())
            link.close()
        if self._local_server is not None:
            self._local_server.stop()
            self._local_server = None

    def keep_server(self, server: Server) -> None:
        """Stop this server when the client is closed: it was started for it alone."""
        self._local_server = server

    def __enter__(self) -> ParameterClient:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def _row_numbers(wanted: list[torch.Tensor | None]) -> list[memoryview]:
    return [memory_of(rows) for rows in wanted if rows is not None]


def _describe(model: torch.nn.Module) -> tuple[dict[str, Any], list[TensorSpec]]:
    sparse = {
        id(module.weight)
        for module in model.modules()
        if isinstance(module, torch.nn.Embedding | torch.nn.EmbeddingBag) and module.sparse
    }
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise InvalidInputError("The model has no parameters that require a gradient.")
    wrong = [name for name, p in parameters.items() if not p.is_floating_point()]
    if wrong:
        raise InvalidInputError(f"A parameter server holds real numbers; these parameters are not: {wrong}.")
    return parameters, [TensorSpec(name, tuple(p.shape), id(p) in sparse) for name, p in parameters.items()]
