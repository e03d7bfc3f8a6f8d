"""One experiment, checked and complete, about to be run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from cargobike.core.facts import Fact
from cargobike.core.goals import Goals
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import Params, Resources
from cargobike.engines.engine import Engine
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial.payload import DataFiles
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.rules.stop_rule import StopRule
from cargobike.search.spaces.space import Searchspace


class Callback(Protocol):
    """Is told every fact of an experiment, in order, as it is recorded."""

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Take in some facts."""
        ...


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait for a worker before giving it up.

    Attributes:
        join_s: From its start to its first word.
        silence_s: Without any word, although its connection is open (its machine hangs, its process is stopped).
        reconnect_s: After its connection closed, if the engine says that it lives (the network was cut).
    """

    join_s: float = 120.0
    silence_s: float = 30.0
    reconnect_s: float = 10.0


class Shipment(msgspec.Struct, frozen=True, kw_only=True):
    """The train function as it travels, and what is said about it."""

    title: str
    function: bytes
    libraries: tuple[str, ...]
    wants_reporter: bool
    source: str
    file: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, where, and how; the optimizer has been set up.

    `server` is what parameter servers run, as `module:name`; `options` is what members of a gang are told.
    """

    shipment: Shipment
    space: Searchspace
    names: tuple[str, ...]
    optimizer: AbstractOptimizer
    plan: Plan
    engine: Engine
    project: ProjectFolder
    version: str
    direction: Literal["max", "min"] = "max"
    metric: str | None = None
    goals: Goals = Goals()
    start_points: Sequence[Params] = ()
    warm_start: tuple[str, ...] = ()
    params: dict[str, Any] | None = None
    resources: Resources = msgspec.field(default_factory=Resources)
    isolation: Literal["fresh", "reuse"] = "fresh"
    own_directory: bool = True
    name: str = ""
    description: str = ""
    durability: Literal["process", "power"] = "process"
    stop_rules: Sequence[StopRule] = ()
    callbacks: Sequence[Callback] = ()
    quiet: bool = False
    recipe: bytes | None = None
    data: DataFiles | None = None
    payload: bytes | None = None
    versioned_resources: tuple[Path, ...] = ()
    tensorboard: bool = False
    patience: Patience = msgspec.field(default_factory=Patience)
    server: str = ""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
