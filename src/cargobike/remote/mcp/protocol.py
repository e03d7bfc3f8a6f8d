"""The Model Context Protocol, as far as tools need it: JSON-RPC 2.0, the handshake, lists and calls. No pipes.

Versions of the protocol are dates. A client names the one that it speaks; we answer with the same if we know it, else
with the newest that we know, as the protocol says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from cargobike.core.version import __version__

VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LONGEST_LINE: Final = 4 << 20
_PARSE, _REQUEST, _METHOD, _PARAMS = -32700, -32600, -32601, -32602


class ToolCall(NamedTuple):
    """A tool that a client wants called."""

    id: str | int
    tool: str
    arguments: Mapping[str, Any]


class Cancel(NamedTuple):
    """A call that a client does not want any more."""

    id: str | int


Outcome = dict[str, Any] | ToolCall | Cancel | None
"""What follows from a message: a reply to send, a tool to call, a call to cancel, or nothing."""


class Protocol:
    """One session with a client.

    Guarantees: whatever arrives, a request gets exactly one reply, from here or from `replied` and `refused`; a
    notification gets none.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]], instructions: str) -> None:
        self._tools = list(tools)
        self._instructions = instructions

    def handle(self, line: bytes) -> Outcome:
        """Return what follows from one line of a client."""
        try:
            message = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return refused(None, _PARSE, f"That is no JSON: {error}")
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return refused(None, _REQUEST, "That is no message of JSON-RPC 2.0.")
        method, params, name = message.get("method"), message.get("params") or {}, message.get("id")
        if not isinstance(method, str):
            return None if "result" in message or "error" in message else refused(name, _REQUEST, "It has no method.")
        if not isinstance(params, dict):
            return None if name is None else refused(name, _PARAMS, "Parameters are an object.")
        if name is None:
            return self._notified(method, params)
        if not isinstance(name, (str, int)):
            return refused(None, _REQUEST, "The id of a request is a text or a number.")
        return self._asked(name, method, params)

    def _notified(self, method: str, params: Mapping[str, Any]) -> Outcome:
        cancelled = params.get("requestId")
        if method == "notifications/cancelled" and isinstance(cancelled, (str, int)):
            return Cancel(cancelled)
        return None

    def _asked(self, name: str | int, method: str, params: Mapping[str, Any]) -> Outcome:
        match method:
            case "initialize":
                wanted = params.get("protocolVersion")
                return _reply(
                    name,
                    {
                        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
                        "capabilities": {"tools": {"listChanged": False}},
                        "serverInfo": {"name": "cargobike", "title": "Cargobike", "version": __version__},
                        "instructions": self._instructions,
                    },
                )
            case "ping":
                return _reply(name, {})
            case "tools/list":
                return _reply(name, {"tools": self._tools})
            case "tools/call":
                tool, arguments = params.get("name"), params.get("arguments") or {}
                known = [one["name"] for one in self._tools]
                if tool not in known:
                    return refused(name, _PARAMS, f"There is no tool {tool!r}; there are {', '.join(known)}.")
                if not isinstance(arguments, dict):
                    return refused(name, _PARAMS, "Arguments of a tool are an object.")
                return ToolCall(name, str(tool), arguments)
            case _:
                return refused(name, _METHOD, f"There is no method {method!r} here.")


def replied(name: str | int, text: str, *, is_error: bool = False) -> dict[str, Any]:
    """Return the reply to a call of a tool; what went wrong in a tool is for the assistant to read."""
    return _reply(name, {"content": [{"type": "text", "text": text}], "isError": is_error})


def refused(name: object, code: int, why: str) -> dict[str, Any]:
    """Return the reply to a message that makes no sense."""
    return {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": why}}


def _reply(name: str | int, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "result": result}
