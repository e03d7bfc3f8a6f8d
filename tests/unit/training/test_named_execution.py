"""Operations are handed to the backend when they begin, in the order that was decided."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from cargobike.training.named.execution import begin
from cargobike.training.named.lane import Lane
from cargobike.training.named.requests import Agreed, Request


class Backend:
    """Writes down what it is asked to do."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.waited: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def work(*_: Any) -> Any:
            self.begun.append(name)
            return type("Work", (), {"wait": lambda _: self.waited.append(name)})()

        return work


class Two:
    """A lane of two ranks over such a backend."""

    size, ranks, position = 2, (0, 1), 0

    def __init__(self) -> None:
        self.backend = Backend()

    def group(self, _: torch.Tensor) -> Backend:
        return self.backend


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("allreduce", ["allreduce"]),
        ("broadcast", ["broadcast"]),
        ("allgather", ["_allgather_base"]),
        ("alltoall", ["alltoall_base"]),
        ("reducescatter", ["allreduce"]),
    ],
)
def test_the_backend_is_asked_at_once_and_waited_for_later(kind: str, asked: list[str]) -> None:
    lane = Two()
    request = Request(f"{kind}.x", kind, ((2,),), ("float32",), op="sum")
    agreed = Agreed(request, rows=((2, 2),), splits=((1, 1), (1, 1)))
    finish = begin([agreed], [[torch.ones(2)]], cast(Lane, lane))
    assert finish is not None
    assert (lane.backend.begun, lane.backend.waited) == (asked, [])
    finish()
    assert (lane.backend.begun, lane.backend.waited) == (asked, asked)
