"""Reads recipes of earlier versions, which were a pickle of the objects themselves."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from cargobike.core.asked import Aim, Asked, Gang, Keeping, Limits, Named, Placement, Search
from cargobike.core.errors import StoreError
from cargobike.experiments.asking.setup import Setup
from cargobike.search.optimizers.registry import describe_optimizer
from cargobike.search.rules.stop_rule import StopRule


def read_pickled_recipe(path: Path) -> Setup:
    """Read how an experiment was set up; this runs code of the user's.

    Raises:
        StoreError: If it cannot be read, or its code cannot be found any more.
    """
    try:
        kept: dict[str, Any] = pickle.loads(path.read_bytes())
        return Setup(
            asked=_asked(kept),
            space=kept["space"],
            names=kept["names"],
            optimizer=kept["optimizer"],
            stop_rules=tuple(kept["stop_rules"]),
            start_points=tuple(kept["start_points"]),
            past=tuple(kept.get("past", ())),
        )
    except Exception as error:
        raise StoreError(f"The recipe {path} cannot be read: {type(error).__name__}: {error}") from error


def _asked(kept: dict[str, Any]) -> Asked:
    plan, goals = kept["plan"], kept["goals"]
    return Asked(
        search=Search(
            space=kept["space"].describe(),
            params=kept["params"],
            optimizer=describe_optimizer(kept["optimizer"]),
            stop_rules=_described(kept["stop_rules"]),
            num_trials=plan.num_trials,
            start_points=tuple(kept["start_points"]),
            seed=plan.seed,
            deterministic=plan.deterministic,
        ),
        aim=Aim(
            direction=kept["direction"],
            metric=kept["metric"],
            objectives=dict(goals.objectives),
            constraints=tuple(map(str, goals.constraints)),
        ),
        placement=Placement(
            workers=plan.workers,
            gang=Gang(
                size=plan.gang,
                least=plan.least_gang,
                servers=plan.servers,
                roles=plan.roles,
                is_distributed=plan.is_distributed,
            ),
            resources=kept["resources"],
            isolation=kept["isolation"],
        ),
        limits=Limits(
            timeout_s=plan.timeout_s,
            trial_timeout_s=plan.trial_timeout_s,
            stall_timeout_s=plan.stall_timeout_s,
            max_failures=plan.max_failures,
        ),
        keeping=Keeping(
            durability=kept["durability"],
            working_directory="trial" if kept["own_directory"] else "launch",
        ),
    )


def _described(rules: list[StopRule]) -> tuple[Named, ...]:
    if not rules:
        return ()
    from cargobike.search.rules.stop_rules import describe_stop_rule  # noqa: PLC0415 - most searches have none

    return tuple(map(describe_stop_rule, rules))
