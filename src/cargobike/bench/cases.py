"""What is measured: networks of three sizes, ways to train them, and what came out of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

import msgspec


@dataclass(frozen=True, slots=True)
class Size:
    """A network of dense layers, made for rows of a known data set's width.

    Attributes:
        values: How many numbers a row has.
        hidden: The width of each hidden layer.
        classes: How many classes are told apart.
    """

    values: int
    hidden: tuple[int, ...]
    classes: int

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of every layer, the row and the classes among them."""
        return (self.values, *self.hidden, self.classes)

    @property
    def parameters(self) -> int:
        """How many numbers are learned.

        Example:
            >>> SIZES["mnist"].parameters
            1863690
        """
        return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(self.widths))


class Model(StrEnum):
    """A network, called by the data that its rows are as wide as."""

    MNIST = "mnist"
    HIGGS = "higgs"
    MOLECULAR = "molecular"


class Way(StrEnum):
    """How to train it."""

    ONE = "one"
    ALLREDUCE = "allreduce"
    PS_SYNC = "ps-sync"
    PS_ASYNC = "ps-async"
    LOCAL_SGD = "local-sgd"


SIZES: Final[dict[str, Size]] = {
    Model.MNIST: Size(784, (1024, 1024), 10),
    Model.HIGGS: Size(28, (2048, 2048, 2048), 2),
    Model.MOLECULAR: Size(2871, (2048, 2048, 2048), 2),
}
"""The networks by which asynchronous training on Spark was first judged; their data is made up here."""

WAYS: Final[dict[str, str]] = {
    Way.ONE: "one process",
    Way.ALLREDUCE: "all-reduce",
    Way.PS_SYNC: "parameter server, sync",
    Way.PS_ASYNC: "parameter server, async",
    Way.LOCAL_SGD: "local SGD",
}
"""What each way is called when it is shown."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run: which network, trained which way, by how many."""

    model: str
    way: str
    workers: int

    @property
    def title(self) -> str:
        """What is being measured, for people."""
        size = SIZES[self.model]
        crew = "" if self.way == Way.ONE else f" · {self.workers} worker{'' if self.workers == 1 else 's'}"
        return f"{self.model} · {WAYS[self.way]}{crew} · {size.parameters:,} parameters"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run has shown.

    Attributes:
        case: Which run.
        experiment: Its id in the project.
        images_per_s: Rows per second, all workers together.
        uncertainty: Standard error of rank 0's speeds, times the workers.
        jitter: How much rank 0's speeds scatter (their median absolute deviation, scaled), times the workers.
        step_s: Mean time of a step.
        alone_s: Mean time of the same step without any exchange, in the same processes at the same time.
        communication: Share of a step's time that is not computing: 1 - alone_s / step_s, and not below 0.
        sent_bytes: What a worker sends in each step, on average.
        delay: With parameter servers: how many versions old gradients were, on average.
        dropped: With parameter servers: how many gradients were too old.
        loss: On held-out rows, after the last step.
        curve: Held-out loss over the training: step, seconds of training, loss.
    """

    case: Case
    experiment: str
    images_per_s: float
    uncertainty: float
    jitter: float
    step_s: float
    alone_s: float
    communication: float
    sent_bytes: float
    loss: float
    delay: float | None = None
    dropped: int | None = None
    curve: tuple[tuple[int, float, float], ...] = ()


def cases_of(models: Sequence[str], ways: Sequence[str], workers: Sequence[int]) -> list[Case]:
    """Return every run that is asked for, smallest networks first; one process is one process for any number.

    Example:
        >>> [(each.way, each.workers) for each in cases_of(["mnist"], ["one", "allreduce"], [2, 4])]
        [('one', 1), ('allreduce', 2), ('allreduce', 4)]
    """
    return [
        Case(model=model, way=way, workers=count)
        for model in sorted(dict.fromkeys(models), key=lambda name: SIZES[name].parameters)
        for way in sorted(dict.fromkeys(ways), key=list(WAYS).index)
        for count in ([1] if way == Way.ONE else sorted(dict.fromkeys(workers)))
    ]
