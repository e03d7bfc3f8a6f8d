"""Models as the tests of serving need them: good ones, slow ones, and ones that break in every way there is."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.signatures import Field, Signature
from cargobike.serving.replica import process
from cargobike.serving.wire import ReplicaConfig

NUMBER = Signature((Field("x", "FP64"),), (Field("y", "FP64"),))
VECTOR = Signature((Field("x", "FP32", (3,)),), (Field("y", "FP32"),))
PERSON = Signature((Field("age", "INT32"), Field("town", "BYTES", nullable=True)), (Field("score", "FP64"),))
IDENTITY = Signature((Field("id", "INT64"),), (Field("id", "INT64"),))


class Streaming:
    """Answers at once, and piece by piece."""

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return every row as it is."""
        return rows

    def stream(self, row: Any) -> Iterator[Any]:
        """Yield the numbers below the row."""
        for number in range(int(row)):
            if number == 7:
                raise RuntimeError("seven is too much")
            yield number


class Endless(Streaming):
    """Never comes to the end of an answer."""

    def stream(self, row: Any) -> Iterator[Any]:
        """Yield numbers until the caller is gone."""
        del row
        for number in itertools.count():
            yield number
            time.sleep(0.001)


def double(rows: list[float]) -> list[float]:
    """Return twice each number."""
    return [2 * row for row in rows]


def total(rows: list[list[float]]) -> list[float]:
    """Return the sum of each vector."""
    return [sum(row) for row in rows]


def score(rows: list[dict[str, Any]]) -> list[float]:
    """Return a number for each person."""
    return [row["age"] + len(row.get("town") or "") / 100 for row in rows]


def identity(rows: list[int]) -> list[int]:
    """Return each row as it is, and break as the number says: 666 crashes, 777 hangs, 888 raises, 999 drops a row."""
    if 666 in rows:
        ctypes.string_at(0)
    if 777 in rows:
        time.sleep(600)
    if 888 in rows:
        raise ValueError("888 is not a number for me")
    if 999 in rows:
        return rows[:-1]
    return list(rows)


def nan(rows: list[float]) -> list[float]:
    """Return what is no number for rows below zero."""
    return [math.nan if row < 0 else row for row in rows]


def gated(rows: list[Any]) -> list[Any]:
    """Wait until the file that `GATE` names is there; then return each row."""
    while not Path(os.environ["GATE"]).exists():
        time.sleep(0.005)
    return list(rows)


def broken_start() -> Callable[[list[Any]], list[Any]]:
    """Fail to load."""
    raise OSError("the weights are not there")


@dataclass(frozen=True)
class StandIn:
    """A model that is kept nowhere."""

    name: str
    version: int
    make: Callable[[], Callable[[list[Any]], Any]]
    signature: Signature | None = None
    example: list[Any] | None = None
    fingerprint: str = "0"
    flavour: str = "callable"
    metrics: Mapping[str, float] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    requirements: str = ""

    def predictor(self, *, trust: bool = False) -> Callable[[list[Any]], Any]:
        """Return what predicts."""
        del trust
        return self.make()


MODELS: dict[str, tuple[Callable[[], Any], Signature | None, list[Any] | None]] = {
    "double": (lambda: double, NUMBER, [1.0, 2.0]),
    "total": (lambda: total, VECTOR, [[1.0, 2.0, 3.0]]),
    "score": (lambda: score, PERSON, [{"age": 3, "town": "Kista"}]),
    "identity": (lambda: identity, IDENTITY, [1, 2]),
    "nan": (lambda: nan, NUMBER, [1.0]),
    "gated": (lambda: gated, None, None),
    "anything": (lambda: list, None, None),
    "streaming": (Streaming, None, None),
    "endless": (Endless, None, None),
    "broken": (broken_start, None, None),
    "unwarm": (lambda: identity, IDENTITY, [888]),
}


class StandInKeeper:
    """Keeps the models above: every version is the same."""

    def get(self, reference: str) -> StandIn:
        """Return one."""
        name, _, version = reference.partition(":")
        make, signature, example = MODELS[name]
        return StandIn(name, int(version), make, signature, example)


def main() -> None:
    """Run a replica with one of them: `python -m support.served_models`, with a `ReplicaConfig` on standard input."""
    config = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ReplicaConfig)
    process.model_keeper = StandInKeeper  # type: ignore[assignment, attr-defined]
    process.run_replica(config)


if __name__ == "__main__":
    main()
