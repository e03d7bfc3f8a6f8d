"""A worker's line to one server: connects, proves itself, asks, and connects again when the server was replaced."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from cargobike.core.errors import AuthenticationError, ConnectionLostError, FrameError, ServerRefusedError, WaitError
from cargobike.training.parameter_server.messages import (
    Counts,
    Declare,
    Hello,
    Refused,
    Reply,
    Request,
    decode_reply,
    encode,
)
from cargobike.training.wire.channel import Channel
from cargobike.training.wire.connection import reach

_log = logging.getLogger(__name__)
_PAUSE_S = 0.05
_MOST_BREAKS = 5
"""How often in a row a connection to a server that has proved itself may break, with no request answered."""


class Link:
    """A line to one server. Requests may be sent ahead of reading the reply; one at a time."""

    def __init__(
        self,
        index: int,
        find_address: Callable[[], str],
        secret: bytes,
        hello: Hello,
        *,
        timeout_s: float,
        on_undeclared: Callable[[Link], None],
    ) -> None:
        self.index = index
        self.sent_bytes = 0
        self._find_address, self._secret, self._hello = find_address, secret, hello
        self._timeout_s = timeout_s
        self._on_undeclared = on_undeclared
        self._channel: Channel | None = None
        self._request: tuple[Request, Sequence[memoryview]] | None = None
        self._breaks = 0
        self._last_break: OSError | None = None
        self.connects = 0

    @property
    def name(self) -> str:
        """What to call the server in messages."""
        return f"parameter server {self.index} at {self._find_address()}"

    def connect(self, deadline: float) -> Counts:
        """Connect, however often it takes until the deadline.

        Raises:
            WaitError: If the server does not answer in time.
            AuthenticationError: If it does not know our secret, or we not its, or what is sent is changed on the way.
        """
        self.close()
        problem: Exception | None = None
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise WaitError(
                    f"{self.name} did not answer within {self._timeout_s:g} s; the last time: {problem}. "
                    "Look whether it runs and can be reached from here."
                ) from problem
            try:
                channel = self._reach(min(remaining, 10))
                self.connects += 1
                channel.send(encode(self._hello))
                reply = decode_reply(channel.receive_header()[0])
                assert isinstance(reply, Counts)
                return reply
            except OSError as error:
                if isinstance(error, AuthenticationError) and not isinstance(error, FrameError):
                    raise
                problem = error
                self._broke(error)
                self._give_up_if_hopeless()
                time.sleep(min(_PAUSE_S, max(0.0, remaining)))

    def _reach(self, timeout_s: float) -> Channel:
        try:
            self._channel = reach(self._find_address(), self._secret, timeout_s)
        except AuthenticationError as error:
            raise AuthenticationError(f"{self.name}: {error}.") from error
        self._channel.wait_in_kernel(self._timeout_s + 10)
        return self._channel

    def _broke(self, error: OSError) -> None:
        """Close the line after something went wrong."""
        if self._channel is not None:
            _log.info("the connection to %s broke: %s", self.name, error)
            self.close()
            self._breaks += 1
            self._last_break = error

    def _give_up_if_hopeless(self) -> None:
        """Raise an error if the line breaks again and again.

        A server that was ended or replaced is found again after a while. One that proves itself each time and then
        never gets to answer is not: something between us and it spoils what is sent, or what is sent spoils it.
        """
        if self._breaks < _MOST_BREAKS:
            return
        problem, self._breaks = self._last_break, 0
        what = f"The connection to {self.name} broke {_MOST_BREAKS} times in a row before a request was answered"
        if isinstance(problem, FrameError):
            raise AuthenticationError(
                f"{what}: {problem}. Something between here and there tampers with it."
            ) from problem
        raise ConnectionLostError(
            f"{what}: {problem}. The server's log may say why: it refuses what was changed on its way."
        ) from problem

    def _line(self) -> Channel:
        if self._channel is None:
            raise ConnectionError("not connected")
        return self._channel

    def send(self, request: Request, body: Sequence[memoryview] = ()) -> None:
        """Send a request; what goes wrong shows when the reply is read."""
        self._request = (request, body)
        if self._channel is None:
            return
        try:
            self.sent_bytes += self._channel.send(encode(request), body)
        except OSError as error:
            self._broke(error)

    def receive(self, read_body: Callable[[Channel, int], None] = lambda *_: None) -> Reply:
        """Read the reply to what was sent; if the server is gone, find it again and ask again.

        Raises:
            WaitError: If the server does not come back in time.
            AuthenticationError: If what is sent is changed on the way, again and again.
            ServerRefusedError: If it answers that it cannot.
        """
        assert self._request is not None
        deadline = time.monotonic() + self._timeout_s
        pause_s = _PAUSE_S
        while True:
            if self._channel is None:
                self.connect(deadline)
                self.send(*self._request)
            try:
                header, length = self._line().receive_header()
                reply: Reply = decode_reply(header)
                if not isinstance(reply, Refused):
                    read_body(self._line(), length)
                    self._breaks = 0
                    return reply
            except TimeoutError as error:
                self.close()
                raise WaitError(f"{self.name} did not answer within {self._timeout_s:g} s.") from error
            except OSError as error:
                self._broke(error)
                self._give_up_if_hopeless()
                time.sleep(min(pause_s, max(0.0, deadline - time.monotonic())))
                pause_s = min(2 * pause_s, 1.0)
                continue
            self._breaks = 0
            if reply.reason != "undeclared" or isinstance(self._request[0], Declare):
                self._raise(reply)
            self._declare_again(deadline)

    def _declare_again(self, deadline: float) -> None:
        """Tell a server that was started anew and knows nothing what it is to hold; then ask again."""
        request = self._request
        self.connect(deadline)
        self._on_undeclared(self)
        self._request = request
        assert request is not None
        self.send(*request)

    def _raise(self, refusal: Refused) -> None:
        if refusal.reason == "waited":
            raise WaitError(f"{self.name} {refusal.message}.")
        raise ServerRefusedError(f"{self.name} refused: {refusal.message}.")

    def close(self) -> None:
        """Close the line."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
