"""The sockets behind the front: one connection for each replica, and one for the supervisor."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol, cast

import msgspec

from cargobike.serving.front.desk.problems import GoneBecause
from cargobike.serving.wire import (
    AdminAnswer,
    Answers,
    Drain,
    EndFront,
    Expect,
    Failed,
    Frames,
    FromReplica,
    Piece,
    Ready,
    Routes,
    Said,
    Supervise,
    ToFront,
    framed,
)

_log: Final = logging.getLogger(__name__)
_from_replica: Final = msgspec.msgpack.Decoder(FromReplica)
_to_front: Final = msgspec.msgpack.Decoder(ToFront)


class Hears(Protocol):
    """What happens on the links goes here."""

    def knows(self, secret: str) -> bool:
        """Tell whether this is the secret of the deployment."""
        ...

    def replica_ready(self, link: ReplicaLink, ready: Ready) -> None:
        """Take a replica in."""
        ...

    def replica_said(self, replica: int, message: Answers | Failed | Piece) -> None:
        """Pass on what a replica has answered."""
        ...

    def replica_gone(self, link: ReplicaLink, why: GoneBecause) -> None:
        """Take a replica out."""
        ...

    def supervised_by(self, link: SupervisorLink) -> None:
        """Take orders from a supervisor."""
        ...

    def supervisor_said(self, message: Routes | Drain | Expect | EndFront | AdminAnswer) -> None:
        """Do what a supervisor says."""
        ...

    def supervisor_gone(self, link: SupervisorLink) -> None:
        """Go on without a supervisor."""
        ...


class Link(asyncio.Protocol):
    """A connection over which messages come; the first one must hold the secret."""

    def __init__(self, hub: Hears) -> None:
        self._hub = hub
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self.is_known = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember how to answer."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        """Take what arrives apart; a message that cannot be read ends the connection."""
        try:
            for body in self._frames.feed(data):
                self.message_received(body)
        except (msgspec.DecodeError, ValueError) as error:
            _log.warning("a message that cannot be read: %s", error)
            self.close("wrong")

    def message_received(self, body: bytes) -> None:
        """Handle one message."""
        raise NotImplementedError

    def say(self, message: Said) -> None:
        """Send a message, if the other end is still there."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(framed(message))

    def close(self, why: GoneBecause = "closed") -> None:
        """Close the connection."""
        del why
        if self._transport is not None:
            self._transport.abort()

    def accepts(self, secret: str) -> bool:
        """Tell whether the first message holds the right secret; close the connection if not."""
        self.is_known = self._hub.knows(secret)
        if not self.is_known:
            _log.warning("a process that does not know the secret has connected: refused")
            self.close()
        return self.is_known


class ReplicaLink(Link):
    """The connection of one replica."""

    def __init__(self, hub: Hears) -> None:
        super().__init__(hub)
        self.ready: Ready | None = None

    def message_received(self, body: bytes) -> None:
        """Pass on what a replica says."""
        message = _from_replica.decode(body)
        if isinstance(message, Ready):
            if self.ready is None and self.accepts(message.secret):
                self.ready = message
                self._hub.replica_ready(self, message)
        elif self.ready is not None:
            self._hub.replica_said(self.ready.replica, message)
        else:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the replica is gone."""
        del exc
        if self.ready is not None:
            self._hub.replica_gone(self, "closed")

    def close(self, why: GoneBecause = "closed") -> None:
        """Give the replica up."""
        if self.ready is not None:
            self._hub.replica_gone(self, why)
        super().close()


class SupervisorLink(Link):
    """The connection of a supervisor."""

    def message_received(self, body: bytes) -> None:
        """Pass on what the supervisor says."""
        message = _to_front.decode(body)
        if isinstance(message, Supervise):
            if self.accepts(message.secret):
                self._hub.supervised_by(self)
        elif self.is_known:
            self._hub.supervisor_said(message)
        else:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the supervisor is gone."""
        del exc
        self._hub.supervisor_gone(self)
