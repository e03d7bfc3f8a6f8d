"""Requests to the dashboard: paths, queries, headers and bodies, given to the application without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from cargobike.ui.web.app import create_app
from cargobike.ui.web.state import ServerState
from faults.fuzzing.target import Target
from support.web_project import HOSTILE_ID, LIVELY, sample_project

_HOST = (b"host", b"127.0.0.1:8520")
_ASKING = [[b"content-type".decode(), "application/json"], ["x-cargobike", "1"]]


class FailedRequest(AssertionError):
    """The application answered that it had failed."""


@contextmanager
def web_target(folder: Path) -> Iterator[Target]:
    """Yield a target that answers requests, described as JSON."""
    app = create_app(ServerState.of(sample_project(folder), None))
    with asyncio.Runner() as runner:

        def run(data: bytes) -> None:
            runner.run(_ask(app, data))

        yield Target("dashboard", run, tuple(_examples(app)), "json", allowed=(), weight=12)


def _examples(app: Any) -> Iterator[bytes]:
    """Yield a request for every address, with all its parameters."""
    for path, methods in app.openapi()["paths"].items():
        for method, described in methods.items():
            values = {"experiment_id": LIVELY, "number": "3", "name": "progress", "stream": "stdout", "path": "a.txt"}
            target, query = path, []
            for parameter in described.get("parameters", []):
                name = parameter["name"]
                value = values.get(name, str(parameter["schema"].get("default", 1)))
                if parameter["in"] == "path":
                    target = target.replace(f"{{{name}}}", value)
                elif parameter["in"] == "query":
                    query.append(f"{name}={'true' if name == 'once' else value}")
            for ident in (LIVELY, HOSTILE_ID):
                yield json.dumps(
                    {
                        "method": method.upper(),
                        "path": target.replace(LIVELY, ident),
                        "query": "&".join(query),
                        "headers": _ASKING if method == "post" else [["accept", "application/json"]],
                        "body": "{}",
                    }
                ).encode()
    for path in (
        "/",
        f"/experiments/{LIVELY}",
        f"/experiments/{LIVELY}/trials/3",
        "/compare",
        "/static/app.js",
        "/login",
    ):
        yield json.dumps({"method": "GET", "path": path, "query": "a=1", "headers": [], "body": ""}).encode()


def _bytes(value: object) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")


async def _ask(app: Any, data: bytes) -> None:
    try:
        given = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        given = {"path": "/", "query": data[:3000].decode("latin-1")}
    # As a server does: what follows the first question mark is no path, and a path is text after its escapes.
    raw = _bytes(given.get("path", "/")).partition(b"?")[0].replace(b"\n", b"").replace(b"\r", b"")
    headers = given.get("headers")
    pairs = (
        [tuple(map(_bytes, pair)) for pair in headers if isinstance(pair, list) and len(pair) == 2]
        if isinstance(headers, list)
        else []
    )
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": _bytes(given.get("method", "GET")).decode("ascii", "ignore").upper()[:20],
        "scheme": "http",
        "path": unquote_to_bytes(raw).decode("utf-8", "replace"),
        "raw_path": raw,
        "query_string": _bytes(given.get("query", "")),
        "root_path": "",
        "headers": [_HOST, *((name.lower(), value) for name, value in pairs if name.lower() != b"host")],
        "client": ("127.0.0.1", 1234),
        "server": ("127.0.0.1", 8520),
    }
    messages = [{"type": "http.request", "body": _bytes(given.get("body", "")), "more_body": False}]
    status = 0

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    await app(scope, receive, send)
    if status >= 500:
        raise FailedRequest(f"answered {status}")
