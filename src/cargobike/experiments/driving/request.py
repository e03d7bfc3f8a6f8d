"""One experiment, checked and complete, about to be run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from cargobike.core.asked import Asked
from cargobike.core.facts import Fact
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import Params
from cargobike.engines.engine import Engine
from cargobike.experiments.scheduling.plan import Plan
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.rules.stop_rule import StopRule


class Callback(Protocol):
    """An object that is called with every fact of an experiment, in order, as it is recorded."""

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Handle facts that have just been recorded."""
        ...


@runtime_checkable
class HearsMembers(Protocol):
    """A callback that is also called with what members of a gang publish for each other, and so for the driver."""

    def on_published(self, rank: int, name: str, value: bytes) -> None:
        """Handle what a rank has just published under a name."""
        ...


class Herald:
    """Shows callbacks of users the fact that an experiment has begun, before they see the facts after it.

    That fact is written before the loop runs, in which an interrupt by one of them ends the experiment politely.
    """

    def __init__(self, header: Fact, callbacks: Sequence[Callback]) -> None:
        self._header = header
        self._callbacks = callbacks

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Show it, the first time."""
        del facts
        callbacks, self._callbacks = self._callbacks, ()
        for callback in callbacks:
            callback.on_facts([self._header])


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait for a worker before giving it up.

    Attributes:
        join_s: From its start to its first message.
        silence_s: Without any message, although its connection is open (its machine hangs, its process is stopped).
        reconnect_s: After its connection closed, if the engine says that it is alive (the network was cut).
        end_s: After it should have ended its trial, although it is heard of (it cannot, or does not obey).
        deliver_s: The same where it first sends the files of the trial.
    """

    join_s: float = 120.0
    silence_s: float = 30.0
    reconnect_s: float = 10.0
    end_s: float = 60.0
    deliver_s: float = 600.0


class KeptCode(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an experiment's code once it runs.

    Attributes:
        source: The text of the train function.
        files: Further files for its code folder, by name; `None` for one that is not to be written.
        function_file: File that the train function is defined in.
        resources: Files and folders to keep a copy of.
    """

    source: bytes = b""
    files: dict[str, bytes | None] = msgspec.field(default_factory=dict)
    function_file: str = ""
    resources: tuple[Path, ...] = ()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment, checked and complete; the optimizer has been set up.

    Attributes:
        asked: What was asked for, as it goes into the journal.
        plan: The scheduler's instructions.
        names: The parameters that trials may have.
        payload: The train function, as it is sent to workers.
        libraries: The libraries that the function imports, for workers to load ahead.
        in_process: Whether trials run in the driver's process, without workers.
        function: The train function itself, for that; taken from the payload if it is not given.
        new_space: The space in which an experiment that is taken up goes on, if that is another one: described, and
            what its trials so far had for parameters that are new in it.
    """

    asked: Asked
    plan: Plan
    names: tuple[str, ...]
    optimizer: AbstractOptimizer
    engine: Engine
    project: ProjectFolder
    version: str
    payload: bytes
    stop_rules: Sequence[StopRule] = ()
    start_points: Sequence[Params] = ()
    libraries: tuple[str, ...] = ()
    code: KeptCode = KeptCode()
    callbacks: Sequence[Callback] = ()
    quiet: bool = False
    in_process: bool = False
    function: Callable[..., Any] | None = None
    new_space: tuple[list[dict[str, Any]], Params] | None = None
    patience: Patience = msgspec.field(default_factory=Patience)
