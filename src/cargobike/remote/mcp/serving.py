"""Speak with a client over a pair of pipes: one message in each line, calls in threads, until the client leaves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.remote.mcp.protocol import LONGEST_LINE, Cancel, Protocol, ToolCall, refused, replied
from cargobike.remote.mcp.running import Runner
from cargobike.remote.mcp.tools import call_tool, tools_for

_MOST_CALLS: Final = 4
_log = logging.getLogger(__name__)


class Session:
    """One session over a pair of pipes. Everything that was launched in it ends with it."""

    def __init__(self, runner: Runner, source: BinaryIO, target: BinaryIO) -> None:
        self._runner = runner
        self._source, self._target = source, target
        self._tools = tools_for(runner.role)
        self._writing = threading.Lock()
        self._calls: dict[str | int, threading.Event] = {}

    def serve(self, instructions: str) -> None:
        """Answer until the client closes its end."""
        protocol = Protocol([tool.described() for tool in self._tools.values()], instructions)
        try:
            with ThreadPoolExecutor(_MOST_CALLS, thread_name_prefix="mcp") as pool:
                while line := self._source.readline(LONGEST_LINE + 1):
                    if len(line) > LONGEST_LINE:
                        self._send(refused(None, -32600, f"A message is at most {LONGEST_LINE} bytes long."))
                        break
                    outcome = protocol.handle(line) if line.strip() else None
                    if isinstance(outcome, ToolCall):
                        self._calls[outcome.id] = threading.Event()
                        pool.submit(self._call, outcome)
                    elif isinstance(outcome, Cancel):
                        if outcome.id in self._calls:
                            self._calls[outcome.id].set()
                    elif outcome is not None:
                        self._send(outcome)
                for event in list(self._calls.values()):
                    event.set()
        finally:
            self._runner.close()

    def _call(self, call: ToolCall) -> None:
        cancelled = self._calls[call.id]
        try:
            text = call_tool(self._tools[call.tool], call.arguments, self._runner, cancelled)
            reply = replied(call.id, text)
        except CargobikeError as error:
            reply = replied(call.id, str(error), is_error=True)
        except Exception as error:  # noqa: BLE001 - the session goes on whatever a tool meets
            _log.exception("The tool %s failed", call.tool)
            reply = replied(call.id, f"The tool failed: {error!r}", is_error=True)
        finally:
            self._calls.pop(call.id, None)
        if not cancelled.is_set():
            self._send(reply)

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            with self._writing:
                self._target.write(msgspec.json.encode(message) + b"\n")
                self._target.flush()
        except (BrokenPipeError, ValueError):
            _log.debug("The client is gone")
