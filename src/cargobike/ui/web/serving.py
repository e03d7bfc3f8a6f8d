"""Running the server: its socket, and its end, at the latest with the process that started it."""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvicorn

from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.access import Access
from cargobike.ui.web.app import create_app
from cargobike.ui.web.crowd import Crowd
from cargobike.ui.web.section import Section, registered_sections
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.static import load_plotly

DEFAULT_PORT: Final = 8520
_LOOK_EVERY_S: Final = 0.5
_MOST_CONNECTIONS: Final = 1000
_SWITCH_S: Final = 0.0005

_log = logging.getLogger(__name__)


class Certificate(NamedTuple):
    """What a server proves its name with: a certificate, with those that signed it, and its key, in PEM form."""

    file: Path
    key: Path


@dataclass(frozen=True, slots=True)
class _Held:
    """A connection of uvicorn, and whether it waits for its client."""

    protocol: Any

    def waits_for(self) -> Hashable | None:
        """Return what it waits for: a request, its body, or that its answer is read."""
        protocol = self.protocol
        if protocol.transport is None:
            return None
        cycle = protocol.cycle
        has_answered = cycle is None or cycle.response_complete
        if has_answered or cycle.more_body or protocol.flow.write_paused:
            return id(cycle), has_answered, protocol.transport.get_write_buffer_size()
        return None

    def close(self) -> None:
        """Close it now."""
        self.protocol.transport.abort()


class DashboardServer(uvicorn.Server):
    """A server that tells its open streams when it is about to end, so that it need not wait for them.

    Clients that take too long to send a request or to read its answer are not waited for, least of all when many do.
    """

    def __init__(self, state: ServerState, sections: Sequence[Section], certificate: Certificate | None = None) -> None:
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        config = uvicorn.Config(
            create_app(state, sections),
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=2,
            timeout_keep_alive=15,
            server_header=False,
            limit_concurrency=min(_MOST_CONNECTIONS, soft_limit // 2),
            ws="none",
            ssl_certfile=certificate.file if certificate is not None else None,
            ssl_keyfile=certificate.key if certificate is not None else None,
        )
        super().__init__(config)
        self._state = state
        self._crowd = Crowd()

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections, some times a second."""
        self._crowd.thin_out([_Held(one) for one in self.server_state.connections], time.monotonic())
        return await super().on_tick(counter)

    def end(self) -> None:
        """End soon; may be called from any thread."""
        self._state.closing.set()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: object) -> None:
        """End at Ctrl-C or a termination signal."""
        self._state.closing.set()
        # An answer that is cut off now is not an error worth reading about.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        super().handle_exit(sig, None)


def bind(host: str, port: int | None) -> socket.socket:
    """Return a listening socket: on the port asked for, or without one on the usual port or else any free one.

    Raises:
        InvalidInputError: If the port is in use, or the host is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (DEFAULT_PORT, 0) if port is None else (port,):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, number))
            sock.listen(128)
        except OSError as error:
            sock.close()
            if port is None and number:
                continue
            raise InvalidInputError(
                f"The dashboard cannot listen on {host}:{number}: {error.strerror}. "
                "Choose another port with --port, or leave it out to get a free one."
            ) from error
        return sock
    raise AssertionError("one of the two was returned or raised")


def check_certificate(certificate: Certificate) -> None:
    """Check that a server can use a certificate.

    Raises:
        InvalidInputError: If a file cannot be read, is not in PEM form, or the key belongs to another certificate.
    """
    try:
        # An encrypted key would be asked for at a terminal, which a server need not have.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*certificate, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InvalidInputError(
            f"The certificate {certificate.file} cannot be used with the key {certificate.key}: {error}. Give files in "
            "PEM form, the certificate with those that signed it, and its key without a password."
        ) from error


def _no_password() -> str:
    raise ValueError("the key needs a password")


def _share_the_interpreter() -> None:
    """Let threads that answer requests wait less for those that list things.

    A thread that looks at ten thousand files gives up the interpreter at each of them, and would get it back only
    after the usual 5 ms while another thread computes.
    """
    sys.setswitchinterval(_SWITCH_S)


def serve(project: ProjectFolder, access: Access, sock: socket.socket, certificate: Certificate | None = None) -> None:
    """Answer requests until Ctrl-C, a termination signal, or the end of the process that started this one."""
    _share_the_interpreter()
    state = ServerState.of(project, access)
    sections = registered_sections(state)
    server = DashboardServer(state, sections, certificate)
    threading.Thread(target=_warm_up, args=(sections,), name="cargobike-ui-warm-up", daemon=True).start()
    stop_watching = threading.Event()
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup it stays when its owner is gone
        signal.signal(signal.SIGHUP, lambda *_: server.end())
        threading.Thread(
            target=_end_with_parent, args=(server, stop_watching), name="cargobike-ui-parent", daemon=True
        ).start()
    try:
        server.run(sockets=[sock])
    except KeyboardInterrupt:
        pass
    finally:
        stop_watching.set()
        sock.close()


def _warm_up(sections: Sequence[Section]) -> None:
    """Load what the first page needs before it is asked for."""
    try:
        for section in sections:
            section.prepare()
        load_plotly()
    except CargobikeError:  # the request that needs it will say so
        _log.debug("Nothing could be prepared", exc_info=True)


def _end_with_parent(server: DashboardServer, stop: threading.Event) -> None:
    """End the server when its parent is gone: an orphan gets another parent."""
    parent = os.getppid()
    while not stop.wait(_LOOK_EVERY_S):
        if os.getppid() != parent:
            server.end()
            return
