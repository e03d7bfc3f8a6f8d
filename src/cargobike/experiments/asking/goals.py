"""The arguments that say what a search looks for: objectives, constraints, points to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cargobike.core.asked import Aim
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.goals import read_constraints
from cargobike.core.records import Params
from cargobike.experiments.asking.arguments import Subject
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import names_for_several_objectives
from cargobike.search.rules.stop_rule import EndRule, StopRule


def read_aim(aim: Aim, subject: Subject) -> Aim:
    """Return what the search looks for; what the call leaves open is taken from the space's file."""
    objectives = aim.objectives
    if objectives and len(objectives) < 2:
        raise InvalidInputError(
            f"direction={objectives!r} names {len(objectives)} objectives; give at least two, "
            'or direction="max" and metric="…" for one.'
        )
    mistakes = [
        f"direction of {name!r} is {way!r}; allowed are 'max' and 'min'.{nearest(str(way), ('max', 'min'))}"
        for name, way in objectives.items()
        if way not in ("max", "min")
    ]
    if mistakes:
        raise InvalidInputError("Some objectives are not understood:", mistakes)
    return Aim(
        direction="max" if objectives else aim.direction or subject.direction or "max",
        metric=None if objectives else aim.metric or subject.metric,
        objectives=objectives,
        constraints=tuple(map(str, read_constraints(aim.constraints))),
    )


def check_goals(
    aim: Aim, metric: str | None, optimizer: AbstractOptimizer, rules: Sequence[StopRule | EndRule]
) -> None:
    """Refuse arguments that do not go together with several objectives."""
    if not aim.objectives:
        return
    mistakes = []
    if metric is not None:
        mistakes.append(f"metric={metric!r} chooses one number; leave it out, the objectives are named in direction")
    if not optimizer.handles_objectives:
        name = optimizer.name or type(optimizer).__name__
        several = ", ".join(names_for_several_objectives())
        mistakes.append(f"optimizer {name!r} searches for one number; {several} search for several")
    if rules:
        mistakes.append("early_stop compares trials by one number; leave it out")
    if mistakes:
        raise InvalidInputError(f"With the objectives {', '.join(aim.objectives)}:", mistakes)


def check_start_points(points: Sequence[Mapping[str, Any]], subject: Subject) -> tuple[Params, ...]:
    """Return the start points, or refuse all that do not lie in the space at once."""
    if not points:
        return ()
    if subject.listed is not None or subject.is_grid:
        raise InvalidInputError("start_points were given, but all trials are listed already; leave them out.")
    if isinstance(points, Mapping | str) or not all(isinstance(point, Mapping) for point in points):
        raise InvalidInputError(
            f"start_points={points!r} was given; give a list of dicts, such as [{{'lr': 0.01}}]: one for each point."
        )
    mistakes = []
    accepted: list[Params] = []
    for number, point in enumerate(points):
        try:
            accepted.append(subject.space.validate(point))
        except InvalidInputError as error:
            mistakes.append(f"number {number}: {error}")
    if mistakes:
        raise InvalidInputError("Some start points do not lie in the space:", mistakes)
    return tuple(accepted)
