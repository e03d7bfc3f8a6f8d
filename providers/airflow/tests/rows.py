"""Feature groups of the tests."""

from __future__ import annotations

from typing import Any


def insert_houses() -> Any:
    import pyarrow as pa

    from cargobike import features

    group = features.create_group("houses", key="house", event_time="at")
    at = pa.scalar(0, pa.timestamp("us", "UTC"))
    group.insert(pa.table({"house": [1, 2], "at": pa.array([at.as_py()] * 2, at.type), "rooms": [3, 4]}))
    return group
