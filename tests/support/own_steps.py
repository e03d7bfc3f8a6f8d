"""A pipeline in memory that makes calls of our own, forgets at a chosen moment what it did, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from cargobike import project
from cargobike.core.registering.lazy import load
from cargobike.core.registering.steps import Keepable, Kept, OwnCall, open_kept, stepping

Moment = Literal["never", "before", "after"]


class Killed(BaseException):
    """Stands for the death of a process."""


class Remembering:
    """What a run of a pipeline keeps, in memory; `kill_at` says where in a call it loses its process.

    Attributes:
        done: What each step returned, by its number, by reference where it can be.
        begun: The numbers of the steps that were begun.
        made: How often each call was really made, by name.
    """

    def __init__(self, name: str = "20261117-run") -> None:
        self.name = name
        self.done: dict[int, Any] = {}
        self.begun: set[int] = set()
        self.made: dict[str, int] = {}
        self.kill_at: tuple[str, Moment] = ("", "never")
        self._number = 0

    def run(self, pipeline: Callable[[], Any], *, kill_at: tuple[str, Moment] = ("", "never")) -> Any:
        """Run a pipeline from its beginning, as a driver that takes it up again does."""
        self._number, self.kill_at = 0, kill_at
        try:
            with stepping(self):
                return pipeline()
        except Killed:
            return None

    def own_call(self, call: OwnCall, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make a call, or return what it returned before."""
        self._number += 1
        number, folder = self._number, project.prepare()
        if number in self.done:
            result = self.done[number]
            return open_kept(result, folder) if isinstance(result, Kept) else result
        token = f"{self.name}/{number}"
        with stepping(None, token):
            result = None
            if number in self.begun and call.recover:
                result = load(call.recover)(token, folder, *args, **kwargs)
            self.begun.add(number)
            if self.kill_at == (call.name, "before"):
                raise Killed
            if result is None:
                self.made[call.name] = self.made.get(call.name, 0) + 1
                result = function(*args, **kwargs)
            if self.kill_at == (call.name, "after"):
                raise Killed
        self.done[number] = result.kept_as() if isinstance(result, Keepable) else result
        return result
