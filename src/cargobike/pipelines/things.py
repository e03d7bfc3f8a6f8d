"""What steps were given and have made, as things of lineage; which step needed which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cargobike.core.registering.tracing import Thing
from cargobike.pipelines.facts import StepKind
from cargobike.pipelines.record import RunRecord, StepRecord
from cargobike.pipelines.values.value import Value

_VERSIONED: Final = frozenset({"table", "group", "view", "dataset", "model"})
_CHANGES: Final = {
    "group.insert": "rows inserted",
    "group.delete": "rows deleted",
    "version.promote": "promoted",
    "deployment.roll": "rolled",
    "deployment.rollback": "rolled back",
    "deployment.scale": "scaled",
    "deployment.stop": "stopped",
}
"""Calls of our own that change the thing that they are called on, and what they did to it."""


def thing_of(value: Value | None) -> Thing | None:
    """Return the thing of the project that a value is; of a part, what it is a part of."""
    if value is None or value.thing is None:
        return None
    kind, id = value.thing
    if kind in {"trial", "dataset-part"}:
        kind, id = {"trial": "experiment", "dataset-part": "dataset"}[kind], id.rpartition("/")[0]
    if kind not in _VERSIONED:
        return Thing(kind, id)
    name, _, version = id.rpartition(":")
    return Thing(kind, name, version) if name else Thing(kind, id)


def made_by(step: StepRecord) -> Iterator[tuple[Thing, str]]:
    """Yield what a step has made or changed, each with what it did to it; a function may only hand on what it got."""
    if step.kind is not StepKind.OWN or not step.state.is_done:
        return
    if step.name in _CHANGES:
        changed = thing_of(step.inputs.get("self"))
        if changed is not None:
            yield changed, _CHANGES[step.name]
        return
    made = thing_of(step.result)
    if made is not None:
        yield made, ""


def needs_of(record: RunRecord) -> dict[int, tuple[int, ...]]:
    """Return the steps that each step needed: whose results it was given, or whose things."""
    makers: dict[Thing, int] = {}
    needs: dict[int, tuple[int, ...]] = {}
    for number in sorted(record.steps):
        step = record.steps[number]
        given = (thing_of(value) for value in step.inputs.values())
        of_things = {makers[thing] for thing in given if thing in makers}
        needs[number] = tuple(sorted({*step.after, *of_things}))
        for thing, _ in made_by(step):
            makers[thing] = number
        if (returned := thing_of(step.result)) is not None:
            makers.setdefault(returned, number)
    return needs
