"""Rows of an inference log, and references for them, made without a deployment."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from cargobike.monitoring import Reference
from cargobike.serving.inference_log.columns import HEAD

START = datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()


def usual(rows: int, seed: int = 0, *, moved: float = 0.0) -> dict[str, Any]:
    """Return ages and towns; `moved` is by how many standard deviations the ages have moved."""
    random = np.random.default_rng(seed)
    return {"age": random.normal(40 + 10 * moved, 10, rows), "town": random.choice(["Oslo", "Rome"], rows)}


@functools.cache
def small_reference(window: int = 50) -> Reference:
    """Return a reference of ages and towns; made once, since calibrating takes a moment."""
    return Reference(usual(1000), window=window)


def logged(
    rows: int, *, seed: int = 1, at: Any = START, version: Any = 1, moved: float = 0.0, first: int = 0, every: float = 1
) -> pa.Table:
    """Return rows as a follower gives them, a request a second."""
    features = usual(rows, seed, moved=moved)
    ats = np.asarray(at, np.float64) if np.ndim(at) else float(at) + every * np.arange(rows)
    head: dict[str, Any] = {
        "request_id": [f"r{first + number}" for number in range(rows)],
        "at": pa.array(np.rint(ats * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC")),
        "latency_ms": np.ones(rows, np.float32),
        "model": ["digits"] * rows,
        "version": np.broadcast_to(np.asarray(version, np.int32), rows),
        "status": np.full(rows, 200, np.int16),
        "row": np.zeros(rows, np.int32),
        "input": pa.nulls(rows, pa.string()),
        "output": pa.nulls(rows, pa.string()),
    }
    assert list(head) == [field.name for field in HEAD]
    columns = {**head, "input.age": features["age"], "input.town": features["town"], "output.score": np.ones(rows)}
    return pa.table(columns)
