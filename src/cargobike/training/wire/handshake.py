"""Proves to a worker and a server that the other knows the secret, and makes the keys of their connection.

The server is the end that was connected to, the worker the one that connected, whatever they say to each other later.

Bytes in, bytes out; no socket. Three messages of fixed length: the server's greeting, the worker's answer with its
proof, the server's verdict with its own. Proofs and keys follow from the secret, both ends' fresh random numbers, what
was offered and chosen and, where the connection is encrypted, a fresh X25519 exchange. So whoever relays the messages
learns no key, cannot use them elsewhere, and cannot talk the two into less protection; and who records an encrypted
connection cannot read it later, even with the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass

from cargobike.core.errors import AuthenticationError, InvalidInputError
from cargobike.training.wire.sealing import CAN_ENCRYPT, Seal, Suite, choose, make_seal

if CAN_ENCRYPT:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

_NAME_BYTES = 12


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is spoken over a connection once both ends have proved themselves.

    Attributes:
        name: What both ends say first; 12 bytes.
        version: Only ends with the same version understand each other.
        title: What people call it.
    """

    name: bytes
    version: int
    title: str

    @property
    def words(self) -> bytes:
        """Return the first bytes of a conversation: who speaks, and which version."""
        assert len(self.name) == _NAME_BYTES
        return b"%s%3d\n" % (self.name, self.version)


PROTOCOL = 2
PARAMETER_SERVER = Dialect(b"cargobike ps", PROTOCOL, "the parameter server's protocol")
WORDS = PARAMETER_SERVER.words
"""What both ends say first: who speaks, and which version."""

_HELLO = struct.Struct(f"!{len(WORDS)}sB32s32s")
"""The words; suites offered, or the one chosen; a fresh random number; a fresh public key, or zeros."""
_PROOF_BYTES = 32
GREETING_BYTES = _HELLO.size
ANSWER_BYTES = _HELLO.size + _PROOF_BYTES
VERDICT_BYTES = 1 + _PROOF_BYTES
_LEAST_SECRET_BYTES = 16
_ACCEPTED, _WRONG_SECRET, _UNPROTECTED = range(3)


@dataclass(frozen=True, slots=True)
class Seals:
    """What protects a connection, for each direction of one end."""

    sending: Seal
    receiving: Seal
    binding: bytes = b""
    """The same for both ends of this connection, and for no other: what an end signs to prove who it is."""


def check_words(words: bytes, dialect: Dialect = PARAMETER_SERVER) -> None:
    """Check how the other end begins, before anything else of it is looked at.

    Raises:
        AuthenticationError: If it speaks another version, or is none of ours.

    Example:
        >>> check_words(WORDS)
    """
    if words == dialect.words:
        return
    name, version = words[:_NAME_BYTES], words[_NAME_BYTES:].strip()
    spoken = f"version {int(version)}" if name == dialect.name and version.isdigit() else "none that is known here"
    raise AuthenticationError(
        f"the other end does not speak version {dialect.version} of {dialect.title}, but {spoken}: "
        "it is of an older or newer Cargobike, or not a part of it. Install the same version on all machines"
    )


def check_secret(secret: bytes) -> bytes:
    """Return a secret that cannot be found by trying.

    Raises:
        InvalidInputError: If it is too short.
    """
    if len(secret) < _LEAST_SECRET_BYTES:
        raise InvalidInputError(
            f"A parameter server's secret must have at least {_LEAST_SECRET_BYTES} bytes, not {len(secret)}: "
            "make one with secrets.token_bytes(32)."
        )
    return secret


class ServerHandshake:
    """The server's side of one handshake: send `greeting`, then `judge` the answer."""

    def __init__(self, secret: bytes, offered: Suite, dialect: Dialect = PARAMETER_SERVER) -> None:
        self._secret, self._offered, self._dialect = secret, offered, dialect
        self._private, public = _key_pair(offered)
        self.greeting = _HELLO.pack(dialect.words, offered, os.urandom(32), public)

    def judge(self, answer: bytes) -> tuple[bytes, Seals | None, str]:
        """Return the verdict to send, and the seals if the worker is admitted, or else what is wrong.

        Raises:
            AuthenticationError: If the worker speaks another version.
        """
        hello, proof = answer[: _HELLO.size], answer[_HELLO.size :]
        words, chosen, _, public = _HELLO.unpack(hello)
        check_words(words, self._dialect)
        if chosen not in tuple(Suite) or not chosen & self._offered:
            return _refusal(_UNPROTECTED), None, f"a worker wants protection {chosen}, which is not offered to it"
        try:
            keys = _Keys(self._secret, self.greeting + hello, Suite(chosen), self._private, public)
        except ValueError as error:
            return _refusal(_WRONG_SECRET), None, f"a worker's public key cannot be used: {error}"
        if not hmac.compare_digest(proof, keys.proof_of_worker):
            return _refusal(_WRONG_SECRET), None, "a connection did not know the secret"
        verdict = bytes([_ACCEPTED]) + keys.proof_of_server
        sending, receiving = make_seal(keys.suite, keys.of_server), make_seal(keys.suite, keys.of_worker)
        return verdict, Seals(sending, receiving, keys.binding), ""


class WorkerHandshake:
    """The worker's side of one handshake: send `answer`, then `conclude` with the verdict.

    Raises:
        AuthenticationError: If the greeting is not one of ours, or offers too little.
    """

    def __init__(self, secret: bytes, accepted: Suite, greeting: bytes, dialect: Dialect = PARAMETER_SERVER) -> None:
        words, offered, _, public = _HELLO.unpack(greeting)
        check_words(words, dialect)
        suite = choose(Suite(offered & sum(Suite)), accepted)
        if suite is None:
            raise AuthenticationError(_unprotected(Suite(offered & sum(Suite)), accepted))
        private, own_public = _key_pair(suite)
        hello = _HELLO.pack(dialect.words, suite, os.urandom(32), own_public)
        try:
            self._keys = _Keys(secret, greeting + hello, suite, private, public)
        except ValueError as error:
            raise AuthenticationError(f"the server's public key cannot be used: {error}") from error
        self.answer = hello + self._keys.proof_of_worker

    def conclude(self, verdict: bytes) -> Seals:
        """Return the seals, after the server has proved itself too.

        Raises:
            AuthenticationError: If either does not know the secret.
        """
        if verdict[0] == _UNPROTECTED:
            raise AuthenticationError("the server refuses the protection that was chosen, which it had offered")
        if verdict[0] != _ACCEPTED:
            raise AuthenticationError("the server does not accept our secret")
        if not hmac.compare_digest(verdict[1:], self._keys.proof_of_server):
            raise AuthenticationError("the server does not know the secret")
        keys = self._keys
        return Seals(make_seal(keys.suite, keys.of_worker), make_seal(keys.suite, keys.of_server), keys.binding)


class _Keys:
    """All that follows from a handshake: HKDF-SHA256 of the secret, the X25519 exchange and everything said so far."""

    def __init__(self, secret: bytes, said: bytes, suite: Suite, private: object, public: bytes) -> None:
        exchanged = b""
        if suite is Suite.GCM_ENCRYPTED:
            assert isinstance(private, X25519PrivateKey)
            exchanged = private.exchange(X25519PublicKey.from_public_bytes(public))
        root = hmac.digest(secret, exchanged, "sha256")
        transcript = hashlib.sha256(said).digest()
        self.suite = suite
        self.proof_of_worker, self.proof_of_server, self.of_worker, self.of_server, self.binding = (
            hmac.digest(root, purpose + transcript + b"\1", "sha256")
            for purpose in (b"worker proves", b"server proves", b"worker sends ", b"server sends ", b"both are here")
        )


def _key_pair(suites: Suite) -> tuple[object, bytes]:
    if not suites & Suite.GCM_ENCRYPTED:
        return None, bytes(32)
    private = X25519PrivateKey.generate()
    return private, private.public_key().public_bytes_raw()


def _refusal(reason: int) -> bytes:
    return bytes([reason]) + bytes(_PROOF_BYTES)


def _unprotected(offered: Suite, accepted: Suite) -> str:
    missing = " (it lacks the package cryptography)" if accepted & Suite.GCM_ENCRYPTED else ""
    return f"the server offers protection {offered!r}{missing}; this worker accepts {accepted!r}"
