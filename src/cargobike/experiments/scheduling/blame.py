"""Telling which rank of a gang kept the others waiting, from where each of them stood."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

RUNNER = "cargobike/experiments/trial/program.py"
"""Our file that calls the train function."""
OWN_WAITS = tuple(
    f"cargobike/{name}.py" for name in ("experiments/trial/gang", "workers/wire/mailbox", "training/collectives")
)
"""Our files in which a rank waits for others."""

_WAITING = re.compile(
    r"torch/distributed/|torch/nn/parallel/|torch/autograd/|tensorflow/python/(distribute|eager)|jax/_src/|"
    + "|".join(map(re.escape, OWN_WAITS))
)
_BELOW_THE_FUNCTION = re.compile(rf"(\n  File [^\n]*{re.escape(RUNNER)}[^\n]*)+(\n  File [^\n]*)*")
_DEEPEST_FRAMES = 6


class Stand(msgspec.Struct, frozen=True):
    """Where a rank stood when it was asked.

    Attributes:
        name: Who it is, where, and how far it has come.
        step: The last step it reported, -1 if none.
        stack: The stacks of its threads, empty if it did not respond.
    """

    name: str
    step: int
    stack: str


def blame(what: str, stands: Sequence[Stand]) -> str:
    """Say who kept whom waiting, with the stacks of all, the culprit's first.

    The culprit is whoever does not wait for others in a collective operation; of several, whoever is furthest behind.
    """
    suspects = [stand for stand in stands if not _waits(stand.stack)] or stands
    culprit = min(suspects, key=lambda stand: stand.step)
    others = [stand for stand in stands if stand is not culprit]
    where = _shorten(culprit.stack) or "  (its process did not respond when it was asked for its stack)"
    return "\n".join(filter(None, [f"{culprit.name} stalled: {what}", where, describe(others)]))


def describe(stands: Sequence[Stand]) -> str:
    """Say where those stood who have said so."""
    return "\n".join(f"{stand.name} stood here:\n{_shorten(stand.stack)}" for stand in stands if stand.stack)


def _shorten(stack: str) -> str:
    """Leave out our own frames below the train function."""
    return _BELOW_THE_FUNCTION.sub("", stack)


def _waits(stack: str) -> bool:
    """Tell whether the thread that runs the train function is in a collective operation."""
    return any(
        _WAITING.search("\n".join(block.splitlines()[1 : 1 + _DEEPEST_FRAMES]))
        for block in re.split(r"\n(?=(?:Current thread|Thread) )", stack)
        if RUNNER in block
    )
