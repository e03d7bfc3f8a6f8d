"""What the front does at the desk's word: sends batches, tells the supervisor, watches the clock."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cargobike.core.signatures import Signature
from cargobike.serving.front.desk.desk import SLOT_S, Desk
from cargobike.serving.front.desk.problems import GoneBecause, Problem, Refused
from cargobike.serving.front.desk.seats import Order
from cargobike.serving.front.desk.tally import Tally
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.front.links import ReplicaLink, SupervisorLink
from cargobike.serving.front.protocols.rows import RowCodec
from cargobike.serving.specification import Specification
from cargobike.serving.wire import (
    AdminAnswer,
    AdminRequest,
    Answers,
    Drain,
    Drained,
    EndFront,
    Expect,
    Failed,
    FrontConfig,
    FrontIs,
    Leave,
    Load,
    PackedPredict,
    Piece,
    Predict,
    Ready,
    ReplicaGone,
    ReplicaReady,
    Routes,
    Said,
    Stop,
    packed,
)

TELL_S: Final = 0.25
ADMIN_S: Final = 300.0

_log: Final = logging.getLogger(__name__)


class Hub:
    """Ties the desk to replicas, supervisor and clock; lives in one event loop.

    Args:
        config: What the front was started with.
        specification: What was asked for.
        port: The port that callers use.
        end: Called to drain and end the front within so many seconds.
    """

    def __init__(
        self, config: FrontConfig, specification: Specification, port: int, end: Callable[[float], None]
    ) -> None:
        self.config = config
        self.specification = specification
        self.desk = Desk(specification.limits, retry=specification.retry)
        self.model = specification.model.partition("@")[0].partition(":")[0]
        self.signatures: dict[int, Signature | None] = {
            version: msgspec.json.decode(signature, type=Signature) for version, signature in config.signatures.items()
        }
        self.codecs = {version: RowCodec(signature) for version, signature in self.signatures.items()}
        self._unknown = RowCodec()
        self._port = port
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._links: dict[int, ReplicaLink] = {}
        self._supervisor: SupervisorLink | None = None
        self._alone_since_s = self.now_s()
        self.is_orphan = False
        self.is_leaving = False
        """Whether this front is about to end, and still takes requests."""
        self._is_dispatching = False
        self.keep_batch: Callable[[list[Ticket], bytes, list[Any]], None] | None = None
        """Called with requests of one row each that were answered together, their rows as they travelled, and the
        answers. Such a request has `is_kept` set before it ends."""
        self._packed: dict[int, bytes] = {}
        self._told: dict[int, Tally] = {}
        self._told_counts = (0, 0)
        self._told_at_s = 0.0
        self._admin: dict[int, asyncio.Future[AdminAnswer]] = {}
        self._admin_number = 0

    def knows(self, secret: str) -> bool:
        """Tell whether this is the secret of the deployment."""
        return hmac.compare_digest(secret.encode(), self.config.secret.encode())

    def now_s(self) -> float:
        """Return the time on the desk's clock."""
        return time.monotonic()  # the time of uvloop moves once in a turn, by whole milliseconds

    # --- requests -----------------------------------------------------------------------------------------------------

    def codec(self, version: int) -> RowCodec:
        """Return what reads rows for a version."""
        return self.codecs.get(version, self._unknown)

    def submit(self, ticket: Ticket) -> None:
        """Let a request in; raises `Refused` if it is not."""
        problem = self.desk.admit(ticket)
        if problem is not None:
            raise Refused(problem)
        if not self._is_dispatching:
            self._is_dispatching = True
            self._loop.call_soon(self._dispatch_soon)
        if not self._links:
            self._tell_load()

    def forget(self, ticket: Ticket) -> None:
        """Drop a request whose caller is gone."""
        at_work = self.desk.forget(ticket, self.now_s())
        if at_work is not None:
            replica, batch = at_work
            self._links[replica].say(Stop(batch))

    def _dispatch_soon(self) -> None:
        """Send batches once for all requests that came in this turn of the loop."""
        self._is_dispatching = False
        self._dispatch()

    def _dispatch(self) -> None:
        for order in self.desk.dispatch(self.now_s()):
            try:
                self._links[order.replica].say(self._predict(order))
            except (TypeError, ValueError, OverflowError) as error:  # an integer that MessagePack has no room for
                failure = Failed(order.batch, type(error).__name__, str(error), is_input=True)
                self.desk.failed(order.replica, failure, self.now_s())

    def _predict(self, order: Order) -> Predict | PackedPredict:
        if self.keep_batch is None:
            return Predict(order.batch, order.rows, order.streams)
        rows = self._packed[order.replica] = packed(order.rows)
        return PackedPredict(order.batch, msgspec.Raw(rows), order.streams)

    async def ask_supervisor(self, verb: str, body: Any) -> AdminAnswer:
        """Return what the supervisor answers to a request of an administrator."""
        if self._supervisor is None:
            raise Refused(Problem(503, "no-supervisor", "The supervisor is not running. Try again later.", 2.0))
        self._admin_number += 1
        number = self._admin_number
        future = self._admin[number] = self._loop.create_future()
        self._supervisor.say(AdminRequest(number, verb, body))
        try:
            return await asyncio.wait_for(future, ADMIN_S)
        except TimeoutError:
            raise Refused(Problem(504, "deadline", f"The supervisor did not answer within {ADMIN_S:g} s.")) from None
        finally:
            self._admin.pop(number, None)

    # --- replicas -----------------------------------------------------------------------------------------------------

    def replica_ready(self, link: ReplicaLink, ready: Ready) -> None:
        """Take a replica in; a connection that it had before is closed."""
        before = self._links.pop(ready.replica, None)
        if before is not None:
            before.ready = None
            before.close()
        self._links[ready.replica] = link
        signature = msgspec.json.decode(ready.signature, type=Signature) if ready.signature else None
        self.signatures[ready.version] = signature
        known = self.codecs.get(ready.version)
        if known is None or not known.is_for(signature, ready):
            self.codecs[ready.version] = RowCodec(
                signature, keys=ready.keys, example=ready.example, streams=ready.streams
            )
        self.desk.join(ready.replica, ready.version, self.now_s())
        self._say(ReplicaReady(ready.replica, ready.version, ready.pid))
        self._dispatch()

    def replica_said(self, replica: int, message: Answers | Failed | Piece) -> None:
        """Pass on what a replica has answered."""
        now_s = self.now_s()
        if isinstance(message, Answers):
            fits = self._answered(replica, message, now_s)
        elif isinstance(message, Failed):
            fits = self.desk.failed(replica, message, now_s)
        else:
            fits = self.desk.piece(replica, message.batch, message.value, is_last=message.is_last, now_s=now_s)
        if not fits:
            self._links[replica].close("wrong")
            return
        self._dispatch()
        self._tell_drained()

    def _answered(self, replica: int, message: Answers, now_s: float) -> bool:
        if self.keep_batch is None:
            return self.desk.answered(replica, message.batch, message.answers, now_s)
        together = self.desk.single_rows(replica, message.batch, len(message.answers))
        for ticket in together:
            ticket.is_kept = True
        fits = self.desk.answered(replica, message.batch, message.answers, now_s)
        if together:
            self.keep_batch(together, self._packed[replica], message.answers)
        return fits

    def replica_gone(self, link: ReplicaLink, why: GoneBecause) -> None:
        """Take a replica out, and give its requests to others."""
        ready, link.ready = link.ready, None
        if ready is None or self._links.get(ready.replica) is not link:
            return
        del self._links[ready.replica]
        self._packed.pop(ready.replica, None)
        self.desk.leave(ready.replica, why, self.now_s())
        self._say(ReplicaGone(ready.replica, why))
        self._tell_drained()
        self._dispatch()

    def _tell_drained(self) -> None:
        for replica in self.desk.drained:
            self._say(Drained(replica))
        self.desk.drained.clear()

    def dismiss(self) -> None:
        """Tell all replicas to end: there will be no front and no supervisor."""
        for link in self._links.values():
            link.say(Leave())

    # --- supervisor ---------------------------------------------------------------------------------------------------

    def supervised_by(self, link: SupervisorLink) -> None:
        """Take orders from a supervisor from now on, and tell it how things stand."""
        before, self._supervisor = self._supervisor, link
        if before is not None:
            before.close()
        self._say(FrontIs(os.getpid(), self._port, self.desk.replicas))

    def supervisor_gone(self, link: SupervisorLink) -> None:
        """Go on without a supervisor, for a time."""
        if self._supervisor is link:
            self._supervisor = None
            self._alone_since_s = self.now_s()

    def supervisor_said(self, message: Routes | Drain | Expect | EndFront | AdminAnswer) -> None:
        """Do what the supervisor says."""
        if isinstance(message, Routes):
            self.desk.route(message)
        elif isinstance(message, Drain):
            self.desk.drain(message.replica)
            self._tell_drained()
        elif isinstance(message, Expect):
            self.desk.expect(message.starting, refuse=message.refuse, now_s=self.now_s())
        elif isinstance(message, EndFront):
            self._end(message.within_s)
        elif (future := self._admin.get(message.number)) is not None and not future.done():
            future.set_result(message)
        self._dispatch()

    def _say(self, message: Said) -> None:
        if self._supervisor is not None:
            self._supervisor.say(message)

    def _tell_load(self) -> None:
        desk = self.desk
        arrived, refused = self._told_counts
        now_s = self.now_s()
        self._say(
            Load(
                at_s=time.time(),
                arrived=desk.arrived - arrived,
                waiting=desk.waiting,
                at_work=desk.at_work,
                longest_wait_s=desk.take_longest_wait(now_s),
                refused=desk.refused - refused,
                versions={
                    version: tally.since(self._told.get(version) or Tally()) for version, tally in desk.tallies.items()
                },
            )
        )
        self._told = {version: tally.copy() for version, tally in desk.tallies.items()}
        self._told_counts = (desk.arrived, desk.refused)
        self._told_at_s = now_s

    # --- time ---------------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """End what takes too long, and tell the supervisor how busy it is, until cancelled."""
        while True:
            await asyncio.sleep(SLOT_S)
            now_s = self.now_s()
            for replica in self.desk.tick(now_s):
                _log.warning("replica %d has not answered for too long: given up", replica)
                self._links[replica].close("hung")
            if now_s - self._told_at_s >= TELL_S:
                self._tell_load()
            if self._supervisor is None and now_s - self._alone_since_s > self.config.grace_s:
                _log.warning("no supervisor for %g s: ending", self.config.grace_s)
                self.is_orphan = True
                self._end(self.config.grace_s)
                return
