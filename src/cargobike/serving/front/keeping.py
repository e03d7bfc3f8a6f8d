"""The inference log as the front sees it: a place to put requests and answers that never makes it wait.

What is kept is turned into columns and written by a process of its own, which is started again if it is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from cargobike.core.package import PACKAGE_PARENT
from cargobike.core.signatures import Signature
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.inference_log.messages import LogConfig, Signed, from_log
from cargobike.serving.inference_log.packing import Packet, packed_rows
from cargobike.serving.inference_log.sink import Counts, Sample
from cargobike.serving.specification import Specification
from cargobike.serving.wire import Frames, Said, framed

AT_ONCE: Final = 32
"""How many requests are packed at once."""
AT_ONCE_BYTES: Final = 64 << 10
"""About how many bytes of rows and answers go to the process of the log in one message."""
LATEST_S: Final = 0.05
"""How long a request waits for others at most."""
MOST_BYTES: Final = 64 << 20
"""The most memory for what the process of the log has not read yet; beyond it requests are dropped, and counted."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0

_log: Final = logging.getLogger(__name__)
_clock_began_at: Final = time.time() - time.monotonic()
"""When the desk's clock stood at 0: requests are logged with the time of day."""


class LogKeeper:
    """Hands requests to the process of the inference log; all calls come from the event loop.

    Guarantees: `take` never waits and never raises; what cannot be kept is counted. Requests that were handed over are
    kept even if the front is killed.

    Args:
        specification: The deployment, and what of it is kept.
        project: The project's address.
        model: The name of the model.
        signatures: What each version takes and returns; looked into when a version answers for the first time.

    Attributes:
        counts: What became of requests.
        keeps_all: Whether every request is kept, so that batches can be taken whole.
    """

    def __init__(
        self, specification: Specification, project: str, model: str, signatures: Mapping[int, Signature | None]
    ) -> None:
        self._specification = specification
        self._project = project
        self._model = model
        self._signatures = signatures
        self._sample = Sample(specification.logging.sample)
        self.keeps_all = self._sample.is_all
        self._waiting: list[tuple[bytes, Ticket]] = []
        self._packets: dict[int, Packet] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._link: _LogLink | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._is_closing = False
        self._earlier = Counts()
        self.counts = Counts()

    async def start(self) -> None:
        """Start the process of the log."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            program = (
                f"import sys; sys.path.append({PACKAGE_PARENT!r}); "
                "from cargobike.serving.inference_log.process import main; main()"
            )
            config = LogConfig(
                specification=msgspec.json.encode(self._specification),
                project=self._project,
                model=self._model,
                connection=theirs.fileno(),
            )
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, pass_fds=(theirs.fileno(),)
            )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(msgspec.msgpack.encode(config))
        self._process = process
        _, self._link = await loop.create_unix_connection(lambda: _LogLink(self.counted, self._lost), sock=ours)
        self._hand_over()

    def take(self, request_id: bytes, ticket: Ticket) -> None:
        """Keep a request that has ended."""
        if not self.keeps_all and not self._sample.keeps(request_id):
            return
        self._waiting.append((request_id, ticket))
        if len(self._waiting) >= AT_ONCE:
            self._pack()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATEST_S, self._hand_over)

    def take_batch(self, tickets: list[Ticket], rows: bytes, answers: list[Any]) -> None:
        """Keep requests of one row each that were answered together.

        Their rows are taken as they went to the replica: they are not packed a second time, and no request has to stay
        in memory until there are many.

        Args:
            tickets: The requests, all of one version and with the same end.
            rows: The list of their rows in MessagePack.
            answers: One for each.
        """
        count = len(tickets)
        self.counts.taken += count
        try:
            ids = [ticket.request_id for ticket in tickets]
            self._pack_alike(tickets[0].version, ids, tickets, rows, answers)
        except Exception:  # noqa: BLE001 - serving goes on without a log
            self.counts.refused += count
            _log.exception("%d requests cannot be logged.", count)
        self._hand_over_if_full()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATEST_S, self._hand_over)

    async def close(self, within_s: float = 20.0) -> None:
        """Wait until what was taken is kept, as far as that can be done in a time, and end the process of the log."""
        self._is_closing = True
        if self._starting is not None:
            self._starting.cancel()
        self._hand_over()
        if self._link is not None:
            await self._link.finish(within_s)
        if self._timer is not None:
            self._timer.cancel()
        if self._process is not None:
            await asyncio.to_thread(_await_end, self._process, within_s)
        if self.counts.dropped:
            _log.warning("The inference log has dropped %d of %d requests.", self.counts.dropped, self.counts.taken)

    def counted(self, written: int, dropped: int, failures: int) -> None:
        """Take in what the process of the log says about all that it was given."""
        self.counts.written = self._earlier.written + written
        self.counts.lost = self._earlier.lost + dropped
        self.counts.failures = self._earlier.failures + failures
        self._pause_s = _FIRST_PAUSE_S

    def _pack(self) -> None:
        """Pack what waits: several one after the other cost half of what they cost between other things."""
        waiting, self._waiting = self._waiting, []
        self.counts.taken += len(waiting)
        version = waiting[0][1].version
        if all(t.status == 200 and t.version == version and len(t.rows) == 1 and not t.streams for _, t in waiting):
            self._pack_usual(version, waiting)
        else:
            for request_id, ticket in waiting:
                self._pack_one(request_id, ticket)
        self._hand_over_if_full()

    def _hand_over_if_full(self) -> None:
        if sum(packet.size for packet in self._packets.values()) >= AT_ONCE_BYTES:
            self._hand_over()

    def _pack_alike(
        self, version: int, ids: list[bytes], tickets: list[Ticket], rows: bytes, answers: list[Any]
    ) -> None:
        """Pack requests of one row that were all answered; raises if one of them cannot be packed."""
        began_at = _clock_began_at
        ats = [ticket.arrived_s + began_at for ticket in tickets]
        latencies = [ticket.ended_s - ticket.arrived_s for ticket in tickets]
        self._packet(version).add_usual(ids, ats, latencies, rows, answers)

    def _pack_usual(self, version: int, waiting: list[tuple[bytes, Ticket]]) -> None:
        ids = [request_id for request_id, _ in waiting]
        tickets = [ticket for _, ticket in waiting]
        try:
            rows = packed_rows([ticket.rows[0] for ticket in tickets])
            self._pack_alike(version, ids, tickets, rows, [ticket.answers[0] for ticket in tickets])
        except Exception:  # noqa: BLE001 - one of them cannot be packed; which one is found out
            for request_id, ticket in waiting:
                self._pack_one(request_id, ticket)

    def _pack_one(self, request_id: bytes, ticket: Ticket) -> None:
        answers = ticket.answers if ticket.status == 200 else None
        if ticket.streams and answers is not None:
            answers = [answers]
        at, latency_s = ticket.arrived_s + _clock_began_at, ticket.ended_s - ticket.arrived_s
        try:
            self._packet(ticket.version).add(request_id, at, latency_s, ticket.status, ticket.rows, answers)
        except Exception:  # noqa: BLE001 - serving goes on without a log
            self.counts.refused += 1
            _log.exception("A request cannot be logged.")

    def _packet(self, version: int) -> Packet:
        packet = self._packets.get(version)
        if packet is None:
            packet = self._packets[version] = Packet(version)
        return packet

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._pack()
        packets, self._packets = self._packets, {}
        for packet in packets.values():
            self._send(packet)

    def _send(self, packet: Packet) -> None:
        link = self._link
        if link is None or not link.has_room():
            self.counts.refused += packet.count
            return
        try:
            if packet.version not in link.signed:
                link.signed.add(packet.version)
                link.send(Signed(packet.version, msgspec.json.encode(self._signatures.get(packet.version))))
            link.send(packet.message())
            link.sent += packet.count
        except Exception:  # noqa: BLE001 - serving goes on without a log
            self.counts.refused += packet.count
            _log.exception("%d requests cannot be logged.", packet.count)

    def _lost(self) -> None:
        """Count what was under way, and start the process of the log again after a while."""
        link, self._link = self._link, None
        counts = self.counts
        told = counts.written + counts.lost - self._earlier.written - self._earlier.lost
        counts.lost += max(0, (link.sent if link is not None else 0) - told)
        if not self._is_closing:
            counts.failures += 1
        self._earlier = dataclasses.replace(counts)
        if self._is_closing:
            return
        _log.warning("The process of the inference log has ended, and is started again in %g s.", self._pause_s)
        self._starting = asyncio.get_running_loop().create_task(self._start_again(self._pause_s))
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)

    async def _start_again(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        if self._process is not None:
            await asyncio.to_thread(_await_end, self._process, 0.0)
        await self.start()


class _LogLink(asyncio.Protocol):
    """The connection to one process of the log."""

    def __init__(self, counted: Callable[[int, int, int], None], lost: Callable[[], None]) -> None:
        self._counted = counted
        self._lost = lost
        self._frames = Frames()
        self._ended = asyncio.Event()
        self.signed: set[int] = set()
        self.sent = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not of that class

    def data_received(self, data: bytes) -> None:
        """Take in counts."""
        for body in self._frames.feed(data):
            said = from_log.decode(body)
            self._counted(said.written, said.dropped, said.failures)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that the process is gone."""
        self._ended.set()
        self._lost()

    def has_room(self) -> bool:
        """Tell whether the process reads what it is given."""
        return not self._transport.is_closing() and self._transport.get_write_buffer_size() < MOST_BYTES

    def send(self, message: Said) -> None:
        """Send a message, now or when there is room."""
        self._transport.write(framed(message))

    async def finish(self, within_s: float) -> None:
        """Send no more, and wait until the process has said what became of everything."""
        if self._transport.is_closing():
            return
        self._transport.write_eof()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), within_s)
        self._transport.abort()


def _await_end(process: subprocess.Popen[bytes], within_s: float) -> None:
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def open_log(
    specification: Specification, project: str, model: str, signatures: Mapping[int, Signature | None]
) -> LogKeeper | None:
    """Return the log that was asked for, started; `None` if none was."""
    if not specification.logging.sample:
        return None
    keeper = LogKeeper(specification, project, model, signatures)
    await keeper.start()
    return keeper
