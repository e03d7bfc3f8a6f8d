"""Tell hooks of alarms from a thread of its own: judging never waits for one, and none of their failures reaches it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from cargobike.monitoring.facts import AlarmRaised, Hooks, HookTold
from cargobike.monitoring.hooks.command import run_command
from cargobike.monitoring.hooks.mail import send_mail
from cargobike.monitoring.hooks.webhook import post

_TRIES: Final = 3
_PAUSE_S: Final = 5.0
_MOST_WAITING: Final = 100
_log: Final = logging.getLogger(__name__)

Hook = Callable[[Hooks, dict[str, Any]], None]
HOOKS: Final[dict[str, Hook]] = {"webhook": post, "email": send_mail, "command": run_command}


def wanted(hooks: Hooks) -> list[str]:
    """Return the names of the hooks that are to be told."""
    return [name for name in HOOKS if getattr(hooks, name)]


def message_of(monitor: str, subject: str, alarm: AlarmRaised) -> dict[str, Any]:
    """Return what hooks are told of an alarm: plain data."""
    return {"monitor": monitor, "subject": subject, "alarm": msgspec.to_builtins(alarm)}


class Teller:
    """Tells hooks, one after the other, in a thread.

    Args:
        monitor: The name of the monitor.
        subject: What it watches.
        hooks: What is to be told.
        pause_s: How long it waits before it tries again.
    """

    def __init__(self, monitor: str, subject: str, hooks: Hooks, pause_s: float = _PAUSE_S) -> None:
        self._monitor, self._subject, self._hooks, self._pause_s = monitor, subject, hooks, pause_s
        self._waiting: queue.Queue[tuple[str, AlarmRaised] | None] = queue.Queue(_MOST_WAITING)
        self._told: queue.SimpleQueue[HookTold] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def tell(self, alarm: AlarmRaised, names: Sequence[str] | None = None) -> None:
        """Tell hooks of an alarm, all of them or some; returns at once."""
        for name in wanted(self._hooks) if names is None else names:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cargobike-hooks", daemon=True)
                self._thread.start()
            try:
                self._waiting.put_nowait((name, alarm))
            except queue.Full:
                _log.warning("%s is not told of %s: %d others wait already.", name, alarm.id, _MOST_WAITING)

    def told(self, now: float) -> list[HookTold]:
        """Return what became of it since the last call."""
        facts = []
        while not self._told.empty():
            facts.append(msgspec.structs.replace(self._told.get(), at=now))
        return facts

    def close(self, timeout_s: float) -> None:
        """End the thread; what was not told by then is told when the monitor is watched again."""
        self._over.set()
        if self._thread is not None:
            self._waiting.put(None) if not self._waiting.full() else None
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            name, alarm = item
            error = ""
            for left in reversed(range(_TRIES)):
                error = self._tried(name, alarm)
                if not error or (left and self._over.wait(self._pause_s)):
                    break
            self._told.put(HookTold(at=0.0, alarm=alarm.id, hook=name, error=error))

    def _tried(self, name: str, alarm: AlarmRaised) -> str:
        try:
            HOOKS[name](self._hooks, message_of(self._monitor, self._subject, alarm))
        except Exception as error:  # noqa: BLE001 - a hook is never a reason to stop watching
            _log.warning("The hook %s was not told of %s: %s", name, alarm.id, error)
            return str(error) or type(error).__name__
        return ""
