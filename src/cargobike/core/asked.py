"""What was asked for: one record of a call at the front door, from there to the journal.

It is made once, of what the caller said. Resolution fills in what was left open (`None`) and changes nothing else. Then
it goes whole into the request, the recipe and the first line of the journal, and is all that `resume`, `reproduce` and
`compare` need to know. It is data: functions and objects are told by name and settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from cargobike.core.goals import Goals, read_constraints
from cargobike.core.origins import label, lift
from cargobike.core.records import Direction, Params, Resources
from cargobike.core.values.exact import pack_exactly, unpack_exactly

Isolation = Literal["fresh", "reuse"]
Durability = Literal["process", "power"]
WorkingDirectory = Literal["trial", "launch"]


class Named(msgspec.Struct, frozen=True, omit_defaults=True):
    """An optimizer or a stop rule as data.

    Attributes:
        name: The name it is registered by; that of its class if it is not.
        path: Where its class is, as `module:name`, if it is not registered.
        settings: What it was made with, defaults included.
    """

    name: str
    path: str = ""
    settings: dict[str, Any] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.settings.items())})"


class Search(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to try: a described space, or `params` for a single run; `seed` and `num_trials` may be left open.

    Each of `num_trials` settings is run `repeats` times.
    """

    space: list[dict[str, Any]] | None = None
    params: Params | None = None
    optimizer: Named | None = None
    stop_rules: tuple[Named, ...] = ()
    num_trials: int | None = None
    start_points: tuple[Params, ...] = ()
    warm_start: tuple[str, ...] = ()
    seed: int | None = None
    deterministic: bool = False
    repeats: int = 1


class Aim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the search is after: one number, or several objectives; limits as text, such as `latency_ms <= 50`."""

    direction: Direction | None = None
    metric: str | None = None
    objectives: dict[str, Direction] = msgspec.field(default_factory=dict)
    constraints: tuple[str, ...] = ()

    @property
    def goals(self) -> Goals:
        """Objectives and limits, understood."""
        return Goals(objectives=self.objectives, constraints=read_constraints(self.constraints))


class Gang(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Workers that run one trial together.

    Attributes:
        size: How many of them; `None` for as many as there is room for.
        least: How many may start or go on without the others, if the gang is elastic.
        servers: How many parameter servers it has besides.
        roles: What each is called, if they are not all workers.
        is_distributed: Whether ranks meet before the function is called; always so in gangs of more than one.
        options: How members train together: the options of parameter servers.
    """

    size: int | None = 1
    least: int | None = None
    servers: int = 0
    roles: tuple[str, ...] = ()
    is_distributed: bool = False
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class Placement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where and on how many workers to run it; `workers` and `engine` may be left open."""

    workers: int | None = None
    gang: Gang = Gang()
    engine: str = ""
    resources: Resources = Resources()
    isolation: Isolation = "fresh"


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When to give up; `None` for never."""

    timeout_s: float | None = None
    trial_timeout_s: float | None = None
    stall_timeout_s: float | None = None
    max_failures: int | None = None


class Keeping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept, where, and how safely; `data` is the folder in the project that given data was written to."""

    durability: Durability = "process"
    working_directory: WorkingDirectory = "trial"
    versioned_resources: tuple[str, ...] = ()
    tensorboard: bool = False
    data: str = ""


class Feeding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the train function was fed with; empty if with nothing.

    Attributes:
        source: Where the data is, or what it is called; without credentials.
        version: Which version of a table or a training dataset it was.
        fingerprint: What its content was.
        rows: How many rows it had.
        options: How it is read.
        kind: What it is, `table`, `dataset` or `file`; empty if it was only in memory.
        part: Which part of a training dataset it was.
    """

    source: str = ""
    version: str = ""
    fingerprint: str = ""
    rows: int = 0
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    kind: str = ""
    part: str = ""

    def __post_init__(self) -> None:
        """Read what was recorded before there was a `kind`, when the source held the version too."""
        lift(self)

    @property
    def label(self) -> str:
        """What people write to mean it, such as `points:3` or `team_value:2/train`."""
        return label(self.source, self.version, self.part)


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that was asked for; `reproduces` is the id of the experiment whose trials are repeated."""

    name: str = ""
    description: str = ""
    function: str = ""
    reproduces: str = ""
    search: Search = Search()
    aim: Aim = Aim()
    placement: Placement = Placement()
    limits: Limits = Limits()
    keeping: Keeping = Keeping()
    feeding: Feeding = Feeding()

    @property
    def is_single(self) -> bool:
        """Whether it is a single run with fixed parameters."""
        return self.search.params is not None

    def packed(self) -> Asked:
        """Return it as JSON can hold it: hyperparameters may be tuples, which it has not."""
        return self._with_params(pack_exactly)

    def unpacked(self) -> Asked:
        """Undo `packed`."""
        return self._with_params(unpack_exactly)

    def _with_params(self, change: Callable[[Any], Any]) -> Asked:
        search = self.search
        if search.params is None and not search.start_points:
            return self
        points = tuple([change(point) for point in search.start_points])
        search = msgspec.structs.replace(search, params=change(search.params), start_points=points)
        return msgspec.structs.replace(self, search=search)

    def settings(self) -> dict[str, Any]:
        """Return everything by the names of the front door's arguments, settings of the optimizer one by one."""
        search, place, gang = self.search, self.placement, self.placement.gang
        optimizer = search.optimizer or Named("")
        return {
            "name": self.name,
            "description": self.description,
            "function": self.function,
            "reproduces": self.reproduces or None,
            "space": search.space,
            "params": search.params,
            "optimizer": optimizer.name,
            **{f"optimizer.{name}": unpack_exactly(value) for name, value in optimizer.settings.items()},
            "early_stop": [str(rule) for rule in search.stop_rules],
            "num_trials": search.num_trials,
            "repeats": search.repeats,
            "start_points": list(search.start_points),
            "warm_start": list(search.warm_start),
            "seed": search.seed,
            "deterministic": search.deterministic,
            "direction": self.aim.direction,
            "metric": self.aim.metric,
            "objectives": self.aim.objectives,
            "constraints": list(self.aim.constraints),
            "workers": place.workers,
            "gang": gang.size,
            "least_gang": gang.least,
            "servers": gang.servers,
            "roles": list(gang.roles),
            "is_distributed": gang.is_distributed,
            **{f"options.{name}": value for name, value in gang.options.items()},
            "engine": place.engine,
            "resources.cpus": place.resources.cpus,
            "resources.gpus": place.resources.gpus,
            "isolation": place.isolation,
            **msgspec.structs.asdict(self.limits),
            **msgspec.structs.asdict(self.keeping),
            "data.source": self.feeding.source,
            "data.version": self.feeding.version,
            "data.kind": self.feeding.kind,
            "data.part": self.feeding.part,
            "data.fingerprint": self.feeding.fingerprint,
            "data.rows": self.feeding.rows or None,
            **{f"data.{name}": value for name, value in self.feeding.options.items()},
        }
