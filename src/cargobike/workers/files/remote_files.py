"""A worker's questions to the driver's file server, over a connection of their own."""

from __future__ import annotations

import time
from typing import Any

import zmq

from cargobike.core.errors import StoreError
from cargobike.workers.files.requests import File, Get, Listing, Put, Reply, Settle, decode_reply, encode
from cargobike.workers.wire.connection import AgentConfig, secured

_ASK_AGAIN_S = 20.0


class RemoteFiles:
    """Sends requests to the driver's file server, one at a time, and repeats one that got lost."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._socket: zmq.Socket[bytes] | None = None
        self._number = 0
        self._patience_s = config.driver_silence_s or 60.0

    def list(self, path: str) -> list[File]:
        """Return the files under a folder."""
        return self.ask(Listing, path=path).files

    def ask(self, kind: type[Put] | type[Settle] | type[Listing] | type[Get], **what: Any) -> Reply:
        """Return the answer to a request.

        Raises:
            StoreError: If the driver refuses, or does not answer.
        """
        if self._socket is None:  # made in the thread that uses it
            self._socket = secured(zmq.Context(), self._config)
            self._socket.connect(self._config.files_address)
        self._number += 1
        body = encode(kind(self._number, **what))
        give_up_at = time.monotonic() + self._patience_s
        while time.monotonic() < give_up_at:
            self._socket.send(body)
            ask_again_at = time.monotonic() + _ASK_AGAIN_S
            while (left_s := ask_again_at - time.monotonic()) > 0:
                if not self._socket.poll(int(left_s * 1000) + 1):
                    break
                reply = decode_reply(self._socket.recv())
                if reply.number == self._number:
                    if reply.error:
                        raise StoreError(reply.error)
                    return reply
        raise StoreError(f"the driver has not answered for {self._patience_s:g} s")
