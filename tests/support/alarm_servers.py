"""Servers that alarms are sent to: a webhook and a mail server, on this machine, in threads."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Posted:
    """What was posted, and how the next posts are answered."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self.url = ""


@contextlib.contextmanager
def webhook_server() -> Iterator[Posted]:
    """Take what is posted."""
    posted = Posted()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            posted.paths.append(self.path)
            self.send_response(posted.statuses.pop(0) if posted.statuses else 204)
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, _served(server):
        posted.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield posted


class Mailed:
    """Mails that were sent: sender, receivers, and the text."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        self.receivers: list[str] = []
        self.address = ""


@contextlib.contextmanager
def mail_server() -> Iterator[Mailed]:
    """Take mails, as RFC 5321 says."""
    mailed = Mailed()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                word = line[:4].upper().strip()
                if word == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = []
                    while (part := self.rfile.readline()) != b".\r\n":
                        lines.append(part)
                    mailed.mails.append(b"".join(lines).decode())
                elif word == b"RCPT":
                    mailed.receivers.append(line.decode().strip())
                elif word == b"QUIT":
                    self.wfile.write(b"221 bye\r\n")
                    return
                self.wfile.write(b"250 ok\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server, _served(server):
        mailed.address = f"127.0.0.1:{server.server_address[1]}"
        yield mailed


@contextlib.contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
