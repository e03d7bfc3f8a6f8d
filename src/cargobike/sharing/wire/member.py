"""One connection to another member, after both have shown their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cargobike.core.errors import AuthenticationError, ConnectionLostError
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.wire.messages import (
    MOST_BODY,
    Answer,
    Greeting,
    Message,
    Question,
    Refused,
    answers,
    encode,
    greetings,
    questions,
)
from cargobike.training.wire.channel import Channel

WAIT_S: Final = 60.0
"""How long an end may be silent while the other waits for it."""


class Member:
    """One end of a connection. Not for several threads.

    Attributes:
        publisher: The key of the other end.
        address: Where it was dialled, or where its connection comes from.
        greeting: What it said first.
    """

    def __init__(self, channel: Channel, publisher: str) -> None:
        self.channel = channel
        self.publisher = publisher
        self.address = channel.peer
        self.greeting = Greeting()
        channel.wait_in_kernel(WAIT_S)

    def hear_greeting(self) -> None:
        """Hear who the other is.

        Raises:
            AuthenticationError: If it says something else.
        """
        header, length = self.channel.receive_header()
        try:
            self.greeting = greetings.decode(header)
        except UNDECODABLE as error:
            raise AuthenticationError(f"{self.address} does not greet: {error}") from error
        self.skip(length)

    def say(self, message: Message, *body: bytes | bytearray | memoryview) -> int:
        """Send a message; return the bytes sent."""
        return self.channel.send(encode(message), [memoryview(part) for part in body])

    def ask(self, question: Question, *body: bytes) -> tuple[Answer, bytes]:
        """Ask, wait for the answer, and return it with its body.

        Raises:
            RefusedError: If the other end does not give what was asked for.
            ConnectionError: If it is gone, or says what is no answer.
            TimeoutError: If it is silent for too long.
        """
        self.say(question, *body)
        return self.hear_whole()

    def hear_whole(self) -> tuple[Answer, bytes]:
        """Return the next answer with its body."""
        answer, length = self.hear()
        body = bytearray(length)
        self.channel.read_into(memoryview(body))
        return answer, bytes(body)

    def hear(self) -> tuple[Answer, int]:
        """Return the next answer, and how long its body is, which must be read next."""
        header, length = self.channel.receive_header()
        try:
            answer: Answer = answers.decode(header)
        except UNDECODABLE as error:
            raise ConnectionLostError(f"{self.address} answers what cannot be read: {error}") from error
        self._check_length(length)
        if isinstance(answer, Refused):
            self.skip(length)
            raise RefusedError(answer.why, is_paused=answer.is_paused)
        return answer, length

    def hear_question(self) -> tuple[Question, bytes]:
        """Return the next question with its body."""
        header, length = self.channel.receive_header()
        try:
            question: Question = questions.decode(header)
        except UNDECODABLE as error:
            raise ConnectionLostError(f"{self.address} asks what cannot be read: {error}") from error
        self._check_length(length)
        body = bytearray(length)
        self.channel.read_into(memoryview(body))
        return question, bytes(body)

    def skip(self, length: int) -> None:
        """Read past a body."""
        self._check_length(length)
        if length:
            self.channel.read_into(memoryview(bytearray(length)))

    def _check_length(self, length: int) -> None:
        if length > MOST_BODY:
            raise ConnectionLostError(f"{self.address} sends {length} bytes at once; at most {MOST_BODY} are taken")

    def close(self) -> None:
        """End the connection; may be called twice, and from another thread."""
        self.channel.shut()
        self.channel.close()

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RefusedError(ConnectionError):
    """A member does not give what it was asked for.

    Attributes:
        is_paused: Whether it may do so later.
    """

    def __init__(self, why: str, *, is_paused: bool = False) -> None:
        super().__init__(why)
        self.is_paused = is_paused


def bits_of(flags: Sequence[bool] | bytes | bytearray) -> bytes:
    r"""Return flags as bits, the first in the highest bit; nothing if none is set.

    Example:
        >>> bits_of([True, False, True]), bits_of([False])
        (b'\xa0', b'')
    """
    if not any(flags):
        return b""
    count = len(flags)
    number = int("".join("1" if flag else "0" for flag in flags), 2) << (-count % 8)
    return number.to_bytes((count + 7) // 8, "big")


def flags_of(bits: bytes, count: int) -> list[bool]:
    r"""Return bits as flags; what is missing is not set, what is too much is ignored.

    Example:
        >>> flags_of(b"\xa0", 3)
        [True, False, True]
    """
    if not bits:
        return [False] * count
    text = bin(int.from_bytes(b"\1" + bits[: (count + 7) // 8], "big"))[3:]
    flags = [digit == "1" for digit in text[:count]]
    return flags + [False] * (count - len(flags))
