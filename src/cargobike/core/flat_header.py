"""The first line of journals of version 1, which held some of what was asked for side by side."""

from __future__ import annotations

from typing import Any

import msgspec

from cargobike.core.asked import Aim, Asked, Gang, Isolation, Named, Placement, Search
from cargobike.core.records import Direction, Params


class FlatHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What version 1 wrote; it knew nothing of limits, resources, settings, stop rules or start points."""

    at: float
    id: str
    name: str
    version: int = 1
    cargobike: str = ""
    description: str = ""
    function: str = ""
    space: list[dict[str, Any]] | None = None
    params: Params | None = None
    optimizer: str = ""
    num_trials: int | None = None
    direction: Direction = "max"
    metric: str | None = None
    objectives: dict[str, Direction] = msgspec.field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    warm_start: tuple[str, ...] = ()
    seed: int = 0
    workers: int = 1
    gang: int = 1
    engine: str = "local"
    isolation: Isolation = "fresh"
    deterministic: bool = False
    user: str = ""
    host: str = ""
    pid: int = 0

    def asked(self) -> Asked:
        """Return the record, as far as it is known."""
        return Asked(
            name=self.name,
            description=self.description,
            function=self.function,
            search=Search(
                space=self.space,
                params=self.params,
                optimizer=Named(self.optimizer) if self.optimizer else None,
                num_trials=self.num_trials,
                warm_start=self.warm_start,
                seed=self.seed,
                deterministic=self.deterministic,
            ),
            aim=Aim(
                direction=self.direction,
                metric=self.metric,
                objectives=self.objectives,
                constraints=self.constraints,
            ),
            placement=Placement(
                workers=self.workers,
                gang=Gang(size=self.gang, is_distributed=self.gang > 1),
                engine=self.engine,
                isolation=self.isolation,
            ),
        )
