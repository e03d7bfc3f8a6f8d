"""The train function on its way to a worker: packed by the driver, opened in the runner.

It travels by the engine's own channel only (an inherited file descriptor, Spark's closure), never over the wire.
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
from collections.abc import Callable
from typing import Any, Literal

import cloudpickle
import msgspec

from cargobike.core.registering.feeding import Feed
from cargobike.experiments.trial.exposing import expose

is_loading = False
"""Whether a train function is just being unpickled, which imports the module that it lives in."""


DataFiles = Feed
"""The name by which recipes that were recorded earlier know it."""


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner needs to call the train function.

    Attributes:
        function: The function, pickled by cloudpickle.
        sys_path: The driver's `sys.path`, so that modules are found by the same names.
        argv: The driver's `sys.argv`, for modules that read the command line when they are imported.
        launch_dir: The directory that the experiment was launched from.
        preload: Libraries that the function needs, imported before the first fork.
        sources: Text of files that exist only in the driver's memory (notebook cells), for tracebacks.
        metric: Which entry of a returned dict is the objective.
        judged_by_reports: Whether a stop rule or an optimizer was chosen that needs the objective in the reports.
        value_is_optional: Whether the function may return nothing (a single tracked run).
        wants_reporter: Whether the function has a parameter `reporter` for us to fill.
        needed_metrics: Names that the dict it returns must hold: objectives and constraints.
        own_directory: Whether each trial works in a directory of its own.
        force_checkpoints_every_s: How many seconds of checkpoints a power cut may cost.
        server: What a parameter server runs instead of the function, as `module:name`.
        options: Settings for training together, for the members of a gang.
        data: What the function gets a share of as `data`.
        modules: The user's own modules for machines that do not have them: source, file, whether it is a package.
    """

    function: bytes
    sys_path: list[str]
    argv: list[str] = []
    launch_dir: str
    preload: list[str] = []
    sources: dict[str, str] = {}
    metric: str | None = None
    judged_by_reports: bool = False
    direction: Literal["max", "min"] = "max"
    value_is_optional: bool = False
    wants_reporter: bool = False
    needed_metrics: list[str] = []
    own_directory: bool = True
    force_checkpoints_every_s: float = 0.0
    server: str = ""
    options: dict[str, Any] = {}
    modules: dict[str, tuple[str, str, bool]] = {}
    data: Feed | None = None

    def encode(self) -> bytes:
        """Turn into bytes."""
        return msgspec.msgpack.encode(self)

    @staticmethod
    def decode(data: bytes) -> Payload:
        """Undo `encode`."""
        return msgspec.msgpack.decode(data, type=Payload)

    def prepare_imports(self) -> None:
        """Make the driver's modules importable here, and its sources visible to tracebacks."""
        # In the driver's order: a user's module may have the name of an installed one, and wins there too.
        own = set(self.sys_path)
        sys.path[:] = [*self.sys_path, *(path for path in sys.path if path not in own)]
        sys.argv[:] = self.argv or sys.argv
        if self.modules:
            # Only workers on other machines need it, and every import delays every worker.
            from cargobike.experiments.trial.shipped_modules import install  # noqa: PLC0415

            install(self.modules)
        for name, text in self.sources.items():
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)

    def load(self) -> Callable[..., Any]:
        """Unpickle the function; user code may run here (imports, `__setstate__`)."""
        global is_loading
        is_loading = True
        try:
            function: Callable[..., Any] = cloudpickle.loads(self.function)
        finally:
            is_loading = False
        expose(function)
        return function


def idle_payload() -> Payload:
    """Return what calls a train function that does nothing, in the directory where it is."""

    def train(x: float) -> float:
        return x

    return Payload(function=cloudpickle.dumps(train), sys_path=[], launch_dir=os.curdir, own_directory=False)


def remember(function: Callable[..., Any], cache_parameters: dict[str, Any]) -> Callable[..., Any]:
    """Make a function that was decorated with `functools.cache` or `lru_cache` into one again, its memory empty."""
    cached: Callable[..., Any] = functools.lru_cache(**cache_parameters)(function)
    return cached
