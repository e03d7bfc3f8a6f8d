"""Ways in which train functions report and save: each is a script, and a train function performs it.

What was performed is known from the script, so every single report can be checked. All values of a report differ from
those of the others of its trial: a report can be told by its values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

Action = tuple[int | None, dict[str, float]] | None
"""A report of these metrics at this step, or `None` to save."""


class Way(NamedTuple):
    """How a train function reports.

    Attributes:
        actions: Yields what it does; the numbers do not depend on the parameters yet.
        metric: The objective's name, if it is asked for by name; then the function returns it in a dict.
        objective: The name of the metric in the curves; none if a first report of several metrics leaves it open.
    """

    actions: Callable[[], Iterator[Action]]
    metric: str | None = None
    objective: str | None = "score"


def _plain() -> Iterator[Action]:
    for step in range(6):
        yield step, {"score": step + 1.0}
        yield None


def _saving_first() -> Iterator[Action]:
    for step in range(6):
        yield None
        yield step, {"score": step + 1.0}


def _never_saving() -> Iterator[Action]:
    for step in range(6):
        yield step, {"score": step + 1.0}


def _with_other_metrics() -> Iterator[Action]:
    for step in range(6):
        yield step, {"loss": float("inf") if step == 2 else -step - 1.0, "score": step + 1.0, "rate": 0.1 * step}
        yield None


def _without_an_objective() -> Iterator[Action]:
    for step in range(6):
        yield step, {"accuracy": step + 1.0, "loss": -step - 1.0}
        yield None


def _objective_every_tenth() -> Iterator[Action]:
    for step in range(40):
        yield step, {"loss": -step - 1.0, **({"score": step + 1.0} if step % 10 == 9 else {})}
        if step % 8 == 7:
            yield None


def _two_reports_of_a_step() -> Iterator[Action]:
    for step in range(6):
        yield step, {"score": step + 0.5}
        yield step, {"score": step + 1.0}
        if step % 2:
            yield None


def _hundreds_between_checkpoints() -> Iterator[Action]:
    for step in range(450):
        yield step, {"score": step + 1.0}
        if step % 150 == 149:
            yield None


def _saving_seldom() -> Iterator[Action]:
    for step in range(9):
        yield step, {"score": step + 1.0}
        if step % 4 == 1:
            yield None


WAYS = {
    "plain": Way(_plain),
    "saving first": Way(_saving_first),
    "with other metrics": Way(_with_other_metrics, metric="score"),
    "without an objective": Way(_without_an_objective, objective=None),
    "never saving": Way(_never_saving),
    "objective every tenth": Way(_objective_every_tenth, metric="score"),
    "two reports of a step": Way(_two_reports_of_a_step),
    "hundreds between checkpoints": Way(_hundreds_between_checkpoints),
    "saving seldom": Way(_saving_seldom),
}


def script(way: str, x: float, y: int) -> list[Action]:
    """Return what a train function with these parameters does, from its start to its end."""
    return [
        action and (action[0], {name: value * (1.0 + x + y) for name, value in action[1].items()})
        for action in WAYS[way].actions()
    ]


def result(way: str, x: float, y: int) -> float:
    """Return what it returns in the end."""
    return (1.0 + x + y) * len(script(way, x, y))
