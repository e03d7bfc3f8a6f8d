"""Seals pieces of frames: whoever lacks the key can neither make one, change one, nor pass one off as another.

Each direction of each connection has a key of its own, and each piece a number that both ends count and that never
travels. A piece that was changed, repeated, left out, moved, sent back to where it came from, or taken from another
connection does not open.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from cargobike.core.errors import FrameError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    CAN_ENCRYPT = True
except ImportError:
    CAN_ENCRYPT = False

Memory: TypeAlias = bytes | bytearray | memoryview
TAG_BYTES = 16
LENGTHS, HEAD, BODY = b"size", b"head", b"body"


class Suite(enum.IntFlag):
    """Ways to protect a connection, as a set of bits."""

    HMAC_TAGS = 1
    GCM_TAGS = 2
    GCM_ENCRYPTED = 4


TAGS = Suite.GCM_TAGS | Suite.HMAC_TAGS if CAN_ENCRYPT else Suite.HMAC_TAGS
ENCRYPTED = Suite.GCM_ENCRYPTED if CAN_ENCRYPT else Suite(0)
_BY_PREFERENCE = (Suite.GCM_TAGS, Suite.HMAC_TAGS, Suite.GCM_ENCRYPTED)


class Seal(Protocol):
    """One direction of one connection. Pieces are opened in the order in which they were sealed."""

    def seal(self, kind: bytes, data: Memory) -> Sequence[Memory]:
        """Return what to send for the next piece; it is longer by `TAG_BYTES`."""

    def open(self, kind: bytes, sealed: memoryview) -> Memory:
        """Return what was sealed.

        Raises:
            FrameError: If this is not the next piece.
        """


def choose(offered: Suite, accepted: Suite) -> Suite | None:
    """Return the cheapest suite that both ends can live with; None if there is none.

    Example:
        >>> choose(Suite.HMAC_TAGS | Suite.GCM_ENCRYPTED, Suite.GCM_ENCRYPTED).name
        'GCM_ENCRYPTED'
    """
    return next((suite for suite in _BY_PREFERENCE if suite & offered & accepted), None)


def make_seal(suite: Suite, key: bytes) -> Seal:
    """Return a seal for one direction."""
    makers: dict[Suite, type[Seal]] = {
        Suite.HMAC_TAGS: _HmacTags,
        Suite.GCM_TAGS: _GcmTags,
        Suite.GCM_ENCRYPTED: _GcmEncrypted,
    }
    return makers[suite](key)  # type: ignore[call-arg]


class _Numbered:
    """Counts pieces: a number is used once for each key, which is what makes these constructions safe."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._count = 0

    def _next(self, kind: bytes) -> bytes:
        number = kind + self._count.to_bytes(8, "big")
        self._count += 1
        return number


class _HmacTags(_Numbered):
    """What is sent can be read; HMAC-SHA256, cut to 16 bytes, shows whether it was changed. Needs no library."""

    def seal(self, kind: bytes, data: Memory) -> Sequence[Memory]:
        return data, self._tag(kind, data)

    def open(self, kind: bytes, sealed: memoryview) -> Memory:
        data = sealed[:-TAG_BYTES]
        if not hmac.compare_digest(sealed[-TAG_BYTES:], self._tag(kind, data)):
            raise FrameError
        return data

    def _tag(self, kind: bytes, data: Memory) -> bytes:
        tag = hmac.new(self._key, self._next(kind), hashlib.sha256)
        tag.update(data)
        return tag.digest()[:TAG_BYTES]


class _Gcm(_Numbered):
    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self._cipher = AESGCM(key)


class _GcmTags(_Gcm):
    """What is sent can be read; the tag of AES-256-GCM (GMAC) shows whether it was changed."""

    def seal(self, kind: bytes, data: Memory) -> Sequence[Memory]:
        return data, self._cipher.encrypt(self._next(kind), b"", data)

    def open(self, kind: bytes, sealed: memoryview) -> Memory:
        data, tag = sealed[:-TAG_BYTES], sealed[-TAG_BYTES:]
        try:
            self._cipher.decrypt(self._next(kind), tag, data)
        except InvalidTag:
            raise FrameError from None
        return data


class _GcmEncrypted(_Gcm):
    """What is sent can be neither read nor changed: AES-256-GCM."""

    def seal(self, kind: bytes, data: Memory) -> Sequence[Memory]:
        return (self._cipher.encrypt(self._next(kind), data, None),)

    def open(self, kind: bytes, sealed: memoryview) -> Memory:
        try:
            return self._cipher.decrypt(self._next(kind), sealed, None)
        except InvalidTag:
            raise FrameError from None
