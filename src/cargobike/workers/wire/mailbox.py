"""What the agent sends to a runner that waits for it, in any of the runner's threads."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from cargobike.workers.wire.packets import LARGEST

_LOOK_UP_S = 0.1

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """Lets several threads wait for different messages on one socket: the one that reads keeps messages for the others.

    Args:
        source: The runner's end of its connection to the agent.
        decode: Turns a packet into a message of the program's.
    """

    def __init__(self, source: socket.socket, decode: Callable[[bytes], Item]) -> None:
        self._source = source
        self._decode = decode
        self._kept: list[Item] = []
        self._changed = threading.Condition()
        self._is_being_read = False

    def wait(
        self,
        is_meant: Callable[[Item], bool],
        timeout_s: float,
        give_up: Callable[[], bool] = lambda: False,
    ) -> Item | None:
        """Return the first message that fits, `None` if none comes in time or before `give_up` returns true."""
        deadline = time.monotonic() + timeout_s
        while True:
            with self._changed:
                for position, message in enumerate(self._kept):
                    if is_meant(message):
                        return self._kept.pop(position)
                left_s = deadline - time.monotonic()
                if left_s <= 0 or give_up():
                    return None
                if self._is_being_read:
                    self._changed.wait(min(left_s, _LOOK_UP_S))
                    continue
                self._is_being_read = True
            message_in: Item | None = None
            try:
                message_in = self._read(min(left_s, _LOOK_UP_S))
            finally:
                with self._changed:
                    self._is_being_read = False
                    if message_in is not None and not is_meant(message_in):
                        self._kept.append(message_in)
                    self._changed.notify_all()
            if message_in is not None and is_meant(message_in):
                return message_in

    def take(self, is_meant: Callable[[Item], bool]) -> list[Item]:
        """Return all messages that fit and are here already, without waiting for any."""
        with self._changed:
            if not self._is_being_read:
                while (message := self._read(0.0)) is not None:
                    self._kept.append(message)
                self._changed.notify_all()
            taken = [message for message in self._kept if is_meant(message)]
            if taken:
                self._kept = [message for message in self._kept if not is_meant(message)]
        return taken

    def _read(self, timeout_s: float) -> Item | None:
        poller = select.poll()
        poller.register(self._source, select.POLLIN)
        if not poller.poll(timeout_s * 1000):
            return None
        packet = self._source.recv(LARGEST)
        if not packet:
            os._exit(1)  # the agent is gone, and this process cannot reach the driver any more
        return self._decode(packet)
