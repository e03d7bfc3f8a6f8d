"""Ports that are held for servers that open their sockets themselves."""

from __future__ import annotations

import errno
import socket

import pytest

from cargobike.serving.supervising.listening import hold_port

HOST = "127.0.0.1"


def test_a_held_port_is_for_servers_that_share_it_on_purpose() -> None:
    with hold_port(HOST, 0) as held:
        port = held.getsockname()[1]
        with pytest.raises(OSError, match="in use") as caught:
            hold_port(HOST, port)
        assert caught.value.errno == errno.EADDRINUSE
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                stranger.bind((HOST, port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port))
        for _ in range(2):  # a server, and the next one after it was lost
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                server.bind((HOST, port))
                server.listen()
                with socket.create_connection((HOST, port)), server.accept()[0]:
                    pass
                with pytest.raises(OSError, match="in use"):
                    hold_port(HOST, port)
                hold_port(HOST, port, is_shared=True).close()
    hold_port(HOST, port).close()
