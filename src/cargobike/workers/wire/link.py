"""A numbered link on which no message gets lost, even if the connection breaks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """Some messages in order, numbered, with the number of the last envelope seen from the other side."""

    seq: int
    ack: int
    items: list[msgspec.Raw]


_encode = msgspec.msgpack.Encoder().encode
_decode_envelope = msgspec.msgpack.Decoder(Envelope).decode


class Link:
    """One end of a connection on which messages arrive exactly once and in order, over reconnects.

    Sends are numbered and kept until the other side has acknowledged them; after a reconnect `unacknowledged` is sent
    again. Receives with a number other than the next one are dropped: they are repeats, or will be repeated.
    Number 0 means "nothing but an acknowledgement".
    """

    __slots__ = ("_kept", "last_seen", "last_sent")

    def __init__(self) -> None:
        self.last_sent = 0
        self.last_seen = 0
        self._kept: deque[tuple[int, list[msgspec.Raw]]] = deque()

    def pack(self, items: Sequence[bytes]) -> bytes:
        """Number and encode some messages; an empty list gives a bare acknowledgement."""
        raws = [msgspec.Raw(item) for item in items]
        if not raws:
            return _encode(Envelope(0, self.last_seen, raws))
        self.last_sent += 1
        self._kept.append((self.last_sent, raws))
        return _encode(Envelope(self.last_sent, self.last_seen, raws))

    def unpack(self, data: bytes) -> list[msgspec.Raw]:
        """Return the new messages in an envelope; raises one of `NoMessage` for bytes that are not an envelope."""
        envelope = _decode_envelope(data)
        kept = self._kept
        while kept and kept[0][0] <= envelope.ack:
            kept.popleft()
        if envelope.seq != self.last_seen + 1:
            return []
        self.last_seen = envelope.seq
        return envelope.items

    def unacknowledged(self) -> list[bytes]:
        """Return what must be sent again after a reconnect."""
        return [_encode(Envelope(seq, self.last_seen, raws)) for seq, raws in self._kept]

    @property
    def in_flight(self) -> int:
        """How many envelopes the other side has not acknowledged yet."""
        return len(self._kept)
