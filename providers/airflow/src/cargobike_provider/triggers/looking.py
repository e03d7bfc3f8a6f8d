"""One warm program for all triggers that look at the same project: asked in turn, ended when no trigger needs it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

from cargobike_provider.errors import CargobikeMistake, CargobikeTaskError, error_of
from cargobike_provider.settings import Settings

LOOK_S: Final = 120.0
"""How long a look may take, the start of the program included."""

_LONGEST_ANSWER: Final = 4 * 1024 * 1024
_END_S: Final = 5.0


class Looker:
    """A program that answers questions of several triggers, one after the other."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._printed: deque[str] = deque(maxlen=20)
        self._printing: asyncio.Task[None] | None = None
        self.users = 0

    async def ask(self, action: str, arguments: dict[str, Any], *, timeout_s: float = LOOK_S) -> Any:
        """Return the answer to a question.

        Raises:
            CargobikeMistake: If asking again would not help.
            CargobikeTaskError: If it failed this time, or there was no answer in time.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(timeout_s):  # wait_for can lose the cancellation of a trigger
                    return await self._ask(action, arguments)
            except TimeoutError:
                await self.end()
                raise CargobikeTaskError(
                    f"Cargobike has not answered within {timeout_s:g} s what it was asked: {action}."
                ) from None
            except asyncio.CancelledError:
                await self.end()  # an answer that is under way would be taken for that of the next question
                raise

    async def _ask(self, action: str, arguments: dict[str, Any]) -> Any:
        if self._process is None or self._process.returncode is not None:
            await self._start()
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise CargobikeTaskError("The program was started without pipes.")
        request = self._settings.request(action, arguments)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            await self.end()
            raise CargobikeTaskError(f"The process that looked for triggers ended. {' '.join(self._printed)}")
        answer = json.loads(line)
        if "error" in answer:
            raise error_of(answer["error"])
        return answer["value"]

    async def _start(self) -> None:
        await self.end()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._settings.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._settings.variables,
                start_new_session=True,
                limit=_LONGEST_ANSWER,
            )
        except OSError as error:
            raise CargobikeMistake(f"{self._settings.python} cannot be started: {error.strerror}.") from error
        self._printing = asyncio.create_task(self._read_printed(self._process.stderr))

    async def _read_printed(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (data := await stream.read(1 << 16)):
            self._printed.extend(data.decode(errors="replace").splitlines())

    def stop(self) -> None:
        """Tell the program to end, without waiting for it."""
        process = self._process
        if process is not None and process.returncode is None:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)  # it only looks: there is nothing to clean up

    async def end(self) -> None:
        """End the program; safe to call twice."""
        self.stop()
        process, self._process = self._process, None
        printing, self._printing = self._printing, None
        if process is not None and process.returncode is None:
            try:
                async with asyncio.timeout(_END_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if printing is not None:
            printing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await printing


_lookers: dict[tuple[int, str, str, str], Looker] = {}


@contextlib.asynccontextmanager
async def shared_looker(settings: Settings) -> AsyncIterator[Looker]:
    """Yield the program that looks for all triggers of this event loop with the same Python and surroundings."""
    surroundings = json.dumps([settings.environment, settings.paths], sort_keys=True)
    place = (id(asyncio.get_running_loop()), settings.python, settings.project, surroundings)
    looker = _lookers.get(place)
    if looker is None:
        looker = _lookers[place] = Looker(settings)
    looker.users += 1
    try:
        yield looker
    finally:
        looker.users -= 1
        if not looker.users:
            _lookers.pop(place, None)
            looker.stop()  # an event loop that is shut down may not get to what follows
            await asyncio.shield(looker.end())
