"""Tell which rank of a gang kept the others waiting, from the stacks of all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

RUNNER = "cargobike/experiments/trial/program.py"
"""The file of ours that calls the train function."""
OWN_WAITS = tuple(
    f"cargobike/{name}.py" for name in ("experiments/trial/gang", "workers/wire/mailbox", "training/collectives")
)
"""The files of ours in which a rank waits for others."""

_WAITING = re.compile(
    r"torch/distributed/|torch/nn/parallel/|torch/autograd/|tensorflow/python/(distribute|eager)|jax/_src/|"
    + "|".join(map(re.escape, OWN_WAITS))
)
_BELOW_THE_FUNCTION = re.compile(rf"(\n  File [^\n]*{re.escape(RUNNER)}[^\n]*)+(\n  File [^\n]*)*")
_DEEPEST_FRAMES = 6


class Stand(msgspec.Struct, frozen=True):
    """What a rank was doing when it was asked.

    Attributes:
        name: Which rank it is, on which host, and its last step.
        step: The last step it reported, -1 if none.
        stack: The stacks of its threads, empty if it did not respond.
    """

    name: str
    step: int
    stack: str


def blame(what: str, stands: Sequence[Stand]) -> str:
    """Say which rank kept the others waiting, with the stacks of all, the culprit's first.

    The culprit is the rank that is not waiting in a collective operation; of several, the one that is furthest behind.
    """
    suspects = [stand for stand in stands if not _waits(stand.stack)] or stands
    culprit = min(suspects, key=lambda stand: stand.step)
    others = [stand for stand in stands if stand is not culprit]
    stack = shorten(culprit.stack) or "  (its process did not respond when it was asked for its stack)"
    return "\n".join(filter(None, [f"{culprit.name} stalled: {what}", stack, describe(others)]))


def all_wait(stands: Sequence[Stand]) -> bool:
    """Tell whether all of them were waiting in a collective operation."""
    return bool(stands) and all(_waits(stand.stack) for stand in stands)


def describe(stands: Sequence[Stand]) -> str:
    """Say where the ranks stood that sent their stacks."""
    return "\n".join(f"{stand.name} stood here:\n{shorten(stand.stack)}" for stand in stands if stand.stack)


def shorten(stack: str) -> str:
    """Leave out our own frames below the train function."""
    return _BELOW_THE_FUNCTION.sub("", stack)


def _waits(stack: str) -> bool:
    """Tell whether the thread that runs the train function is in a collective operation."""
    return any(
        _WAITING.search("\n".join(block.splitlines()[1 : 1 + _DEEPEST_FRAMES]))
        for block in re.split(r"\n(?=(?:Current thread|Thread) )", stack)
        if RUNNER in block
    )
