"""A worker's line to one server: connects, proves itself, asks, and connects again when the server was replaced."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Sequence

from cargobike.core.errors import AuthenticationError, ServerRefusedError, WaitError
from cargobike.training.parameter_server.connection import (
    reach,
    receive_header,
    send_frame,
    wait_in_kernel,
)
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

_log = logging.getLogger(__name__)
_PAUSE_S = 0.05


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
        self._socket: socket.socket | None = None
        self._request: tuple[Request, Sequence[memoryview]] | None = None
        self.connects = 0

    @property
    def name(self) -> str:
        """What to call the server in messages."""
        return f"parameter server {self.index} at {self._find_address()}"

    def connect(self, deadline: float) -> Counts:
        """Connect, however often it takes until the deadline.

        Raises:
            WaitError: If the server does not answer in time.
            AuthenticationError: If it does not know our secret, or we not its.
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
                self._socket = reach(self._find_address(), self._secret, min(remaining, 10))
                wait_in_kernel(self._socket, self._timeout_s + 10)
                self.connects += 1
                send_frame(self._socket, encode(self._hello))
                reply = decode_reply(receive_header(self._socket)[0])
                assert isinstance(reply, Counts)
                return reply
            except AuthenticationError:
                self.close()
                raise
            except OSError as error:
                problem = error
                self.close()
                time.sleep(min(_PAUSE_S, max(0.0, remaining)))

    def _line(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionError("not connected")
        return self._socket

    def send(self, request: Request, body: Sequence[memoryview] = ()) -> None:
        """Send a request; what goes wrong shows when the reply is read."""
        self._request = (request, body)
        if self._socket is None:
            return
        try:
            self.sent_bytes += send_frame(self._socket, encode(request), body)
        except OSError as error:
            _log.info("%s is gone: %s", self.name, error)
            self.close()

    def receive(self, read_body: Callable[[socket.socket, int], None] = lambda *_: None) -> Reply:
        """Read the reply to what was sent; if the server is gone, find it again and ask again.

        Raises:
            WaitError: If the server does not come back in time.
            ServerRefusedError: If it answers that it cannot.
        """
        assert self._request is not None
        deadline = time.monotonic() + self._timeout_s
        pause_s = _PAUSE_S
        while True:
            try:
                if self._socket is None:
                    self.connect(deadline)
                    self.sent_bytes += send_frame(self._line(), encode(self._request[0]), self._request[1])
                header, length = receive_header(self._line())
                reply: Reply = decode_reply(header)
                if isinstance(reply, Refused):
                    if reply.reason != "undeclared" or isinstance(self._request[0], Declare):
                        self._raise(reply)
                    self._declare_again(deadline)
                    continue
                read_body(self._line(), length)
                return reply
            except (AuthenticationError, WaitError):
                raise
            except TimeoutError as error:
                self.close()
                raise WaitError(f"{self.name} did not answer within {self._timeout_s:g} s.") from error
            except OSError as error:
                _log.info("%s is gone: %s", self.name, error)
                self.close()
                time.sleep(min(pause_s, max(0.0, deadline - time.monotonic())))
                pause_s = min(2 * pause_s, 1.0)

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
        if self._socket is not None:
            self._socket.close()
            self._socket = None
