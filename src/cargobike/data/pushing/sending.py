"""Pushes partitions to nodes: to train on, wherever there is room, or for results, in order, to one of them."""

from __future__ import annotations

import itertools
import select
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from cargobike.core.errors import AuthenticationError, ConnectionLostError, EngineError, PredictionError, WaitError
from cargobike.core.values.words import count
from cargobike.data.pushing.chunks import Chunk, in_chunks, unpack
from cargobike.data.pushing.line import Line
from cargobike.data.pushing.messages import (
    Closed,
    End,
    EndOfFeed,
    EndOfPartition,
    Open,
    Results,
    Rows,
    Taken,
    decode_for_feeder,
    encode,
)
from cargobike.training.wire.connection import reach

AHEAD: Final = 4
"""How many chunks of one feeder may wait in a node."""
_CONNECT_S: Final = 20.0


class Node(msgspec.Struct, frozen=True):
    """Where rows can be pushed to, and what proves that one may.

    Attributes:
        name: What people call it, such as `worker:0`.
        address: Where it listens.
        secret: Which those know who may push.
    """

    name: str
    address: str
    secret: bytes

    def __repr__(self) -> str:
        """Leave the secret out."""
        return f"Node({self.name}, {self.address})"


class Pushed(msgspec.Struct, frozen=True):
    """What became of a partition.

    Attributes:
        rows: How many rows were pushed.
        is_wanted: Whether any node takes more.
        problems: What nodes said went wrong.
        gone: Nodes that were not there, or have gone without a word: their functions have returned, or they were lost.
    """

    rows: int = 0
    is_wanted: bool = True
    problems: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class _Open:
    """A node as one feeder sees it."""

    def __init__(self, node: Node, queue: str, *, wants_results: bool) -> None:
        self.node = node
        self.waiting = 0
        self.is_closed = False
        self.has_gone = False
        self.problem = ""
        self.results: deque[Any] = deque()
        try:
            self._line = Line(reach(node.address, node.secret, _CONNECT_S))
            self._line.send(encode(Open(queue, wants_results)))
            if not self._line.has_come(_CONNECT_S):
                raise ConnectionLostError(f"{node.name} does not answer")
            self.hear()
        except AuthenticationError:
            raise
        except OSError:  # its function has returned, or it was lost: the driver knows
            self.gone()

    def fileno(self) -> int:
        return self._line.fileno()

    @property
    def has_room(self) -> bool:
        return not self.is_closed and self.waiting < AHEAD

    def send(self, chunk: Chunk) -> bool:
        """Send a chunk; tells whether the node still took it."""
        try:
            self._line.send(encode(Rows(chunk.form)), chunk.body)
        except OSError:
            self.gone()
            return False
        self.waiting += 1
        return True

    def complete(self) -> None:
        try:
            self._line.send(encode(EndOfPartition()))
        except OSError:
            self.gone()

    def gone(self) -> None:
        self.is_closed = self.has_gone = True
        self.waiting = 0

    def hear(self) -> None:
        """Take in one message, which has come."""
        try:
            header, body = self._line.receive()
        except OSError:
            self.gone()
            return
        message = decode_for_feeder(header)
        if isinstance(message, Taken):
            self.waiting -= message.chunks
        elif isinstance(message, Results):
            self.results.extend(unpack("objects", body))
        elif isinstance(message, Closed):
            self.problem, self.is_closed, self.waiting = message.problem, True, 0

    def close(self) -> None:
        if hasattr(self, "_line"):
            self._line.close()


def push(nodes: Sequence[Node], rows: Iterable[Any], *, turn: int, queue: str, patience_s: float) -> Pushed:
    """Push a partition to nodes that have room, in turns; returns when all rows are taken, or none are wanted.

    Rows that no node wants are not drawn from the iterator.

    Args:
        nodes: Where to.
        rows: Rows of any kind, or tables of Arrow.
        turn: Which node comes first: the number of the partition, so that all get as much.
        queue: Which of their queues.
        patience_s: How long no row may be taken.

    Raises:
        WaitError: If no row is taken for too long; names the nodes.
    """
    opened = [_Open(node, queue, wants_results=False) for node in nodes]
    total = 0
    try:
        line = deque(opened)
        line.rotate(-turn % max(1, len(line)))
        chunks = in_chunks(rows)
        while _await(opened, patience_s, until_room=True):
            chunk = next(chunks, None)
            if chunk is None:
                break
            while not (is_given := _give(line, chunk)) and _await(opened, patience_s, until_room=True):
                pass
            total += chunk.rows if is_given else 0
        for one in opened:
            if not one.is_closed:
                one.complete()
        _await(opened, patience_s, until_room=False)
        is_wanted = any(not one.is_closed for one in opened)
        problems = tuple(f"{one.node.name}: {one.problem}" for one in opened if one.problem)
        return Pushed(total, is_wanted, problems, tuple(one.node.name for one in opened if one.has_gone))
    finally:
        for one in opened:
            one.close()


def _give(line: deque[_Open], chunk: Chunk) -> bool:
    """Send a chunk to the first in line that has room, which goes to the end."""
    for one in list(line):
        if one.has_room and one.send(chunk):
            line.remove(one)
            line.append(one)
            return True
    return False


def _await(opened: Sequence[_Open], patience_s: float, *, until_room: bool) -> bool:
    """Wait for room in any node, or until all that was sent is taken; returns whether any node is open."""
    give_up_at = time.monotonic() + patience_s
    while True:
        living = [one for one in opened if not one.is_closed]
        if not living:
            return False
        if any(one.has_room for one in living) if until_room else all(not one.waiting for one in living):
            _hear(living, 0.0)  # one may have closed meanwhile
            return any(not one.is_closed for one in opened)
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:
            names = ", ".join(one.node.name for one in living if one.waiting)
            raise WaitError(
                f"No row was taken for {patience_s:g} s by {names}. Does the function still call next_batch? "
                "Give a larger feed_timeout if it takes so long for a batch."
            )
        if _hear(living, left_s):
            give_up_at = time.monotonic() + patience_s


def _hear(opened: Sequence[_Open], timeout_s: float) -> bool:
    """Wait until any node says something, and take it in."""
    poll = select.poll()
    by_number = {one.fileno(): one for one in opened}
    for number in by_number:
        poll.register(number, select.POLLIN | select.POLLHUP)
    ready = poll.poll(1000 * timeout_s)
    for number, _ in ready:
        by_number[number].hear()
    return bool(ready)


def push_for_results(node: Node, rows: Iterable[Any], *, queue: str, patience_s: float) -> Iterator[Any]:
    """Push a partition to a node and yield its results, one for each row, in order.

    Raises:
        WaitError: If the node says nothing for too long.
        PredictionError: If it gives fewer results than there are rows, or has stopped.
    """
    chunks = in_chunks(rows)
    first = next(chunks, None)
    if first is None:
        return
    chunks = itertools.chain([first], chunks)
    one = _Open(node, queue, wants_results=True)
    sent = got = 0
    try:
        is_complete = False
        while not is_complete or got < sent:
            if one.is_closed:
                raise PredictionError(_too_few(one, sent, got))
            if not is_complete and one.has_room:
                chunk = next(chunks, None)
                if chunk is None:
                    is_complete = True
                    one.complete()
                elif one.send(chunk):
                    sent += chunk.rows
                if not _hear([one], 0.0):
                    continue
            elif not _hear([one], patience_s):
                raise WaitError(
                    f"{node.name} gave {count(got, 'result')} for {count(sent, 'row')}, and nothing more for "
                    f"{patience_s:g} s. Does its function call batch_results with one result for each row?"
                )
            while one.results:
                got += 1
                yield one.results.popleft()
    finally:
        one.close()


def _too_few(one: _Open, sent: int, got: int) -> str:
    if one.problem:
        return f"{one.node.name} has failed: {one.problem}"
    if not sent:
        return (
            f"{one.node.name} takes no rows: its function has returned or failed, or its executor was lost. "
            "The end of the cluster says which."
        )
    return (
        f"{one.node.name} gave {count(got, 'result')} for {count(sent, 'row')} and takes no more: its function has "
        "returned or called terminate(), or its executor was lost."
    )


def tell_end_of_feed(node: Node) -> None:
    """Tell a node that no rows follow; one that is gone need not know."""
    _tell(node, encode(EndOfFeed()))


def tell_to_end(node: Node) -> None:
    """Tell a node that it is not needed any more; one that is gone need not know."""
    _tell(node, encode(End()))


def _tell(node: Node, message: bytes) -> None:
    try:
        line = Line(reach(node.address, node.secret, _CONNECT_S))
    except AuthenticationError as error:
        raise EngineError(f"{node.name} does not know this cluster's secret: {error}") from error
    except OSError:
        return
    try:
        line.send(message)
    except (ConnectionLostError, OSError):
        pass
    finally:
        line.close()
