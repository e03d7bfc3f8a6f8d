"""First lines for tests, and a comparison of two experiments without what may differ between repetitions of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from cargobike.core import facts
from cargobike.core.asked import Aim, Asked, Named, Placement, Search
from cargobike.core.records import Direction, Params

__all__ = ["canonical"]

_OF_THE_OPTIMIZER = (facts.TrialSuggested, facts.TrialResumed, facts.OptimizerIdled)
_OF_THE_EXPERIMENT = (facts.ExperimentStarted, facts.ExperimentEnded)
_OF_A_TRIAL = (
    facts.AttemptStarted,
    facts.AttemptLost,
    facts.Reported,
    facts.Judged,
    facts.CheckpointSaved,
    facts.ModelKept,
    facts.TrialPaused,
    facts.TrialEnded,
)


def first_fact(
    *,
    at: float = 0.0,
    id: str = "20270115-080000-test",
    name: str = "test",
    description: str = "",
    function: str = "",
    space: Sequence[Mapping[str, Any]] | None = None,
    params: Params | None = None,
    optimizer: str = "",
    num_trials: int | None = None,
    direction: Direction = "max",
    metric: str | None = None,
    objectives: Mapping[str, Direction] | None = None,
    constraints: Sequence[str] = (),
    workers: int = 1,
    user: str = "",
    host: str = "",
) -> facts.ExperimentStarted:
    """Make the first line of a journal, of what readers look at most."""
    return facts.ExperimentStarted(
        at=at,
        id=id,
        asked=Asked(
            name=name,
            description=description,
            function=function,
            search=Search(
                space=None if space is None else [dict(parameter) for parameter in space],
                params=params,
                optimizer=Named(optimizer) if optimizer else None,
                num_trials=num_trials,
            ),
            aim=Aim(
                direction=direction,
                metric=metric,
                objectives=dict(objectives or {}),
                constraints=tuple(constraints),
            ),
            placement=Placement(workers=workers),
        ),
        user=user,
        host=host,
    )


def canonical(journal: Iterable[facts.AnyFact]) -> dict[str, list[facts.AnyFact]]:
    """Return the facts of a journal without times, places, processes, and the order between trials.

    Two runs of a deterministic search are equal in this form.

    Returns:
        What was asked for and how it ended under `"experiment"`, the conversation with the optimizer in its order under
        `"optimizer"`, and what happened to each trial, in its order, under `"trial 0"`, `"trial 1"` and so on.

    Example:
        >>> early = facts.TrialEnded(at=1.0, trial=0, state="completed", value=0.5, peak_memory_bytes=1000)
        >>> late = facts.TrialEnded(at=9.0, trial=0, state="completed", value=0.5, peak_memory_bytes=2000)
        >>> canonical([early]) == canonical([late])
        True
    """
    found: dict[str, list[facts.AnyFact]] = {"experiment": [], "optimizer": []}
    of_trials: dict[int, list[facts.AnyFact]] = {}
    for fact in journal:
        if isinstance(fact, _OF_THE_EXPERIMENT):
            found["experiment"].append(_plain(fact))
        elif isinstance(fact, _OF_THE_OPTIMIZER):
            found["optimizer"].append(_plain(fact))
        elif isinstance(fact, _OF_A_TRIAL):
            of_trials.setdefault(fact.trial, []).append(_plain(fact))
    found.update({f"trial {number}": of_trials[number] for number in sorted(of_trials)})
    return found


def _plain(fact: facts.AnyFact) -> facts.AnyFact:
    changes: dict[str, Any] = {"at": 0.0}
    if isinstance(fact, facts.ExperimentStarted):
        changes |= {"id": "", "pid": 0, "host": "", "user": ""}
    elif isinstance(fact, facts.AttemptStarted):
        changes["workers"] = ()
    elif isinstance(fact, facts.TrialEnded):
        changes |= {"peak_memory_bytes": None, "worker": ""}
    elif isinstance(fact, facts.CheckpointSaved):
        changes["path"] = PurePath(fact.path).name
    return msgspec.structs.replace(fact, **changes)
