"""What executors do with pieces of a log: make features of them, then sum those that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from cargobike.monitoring.states.layout import Layout
from cargobike.monitoring.states.summing import Summing
from cargobike.monitoring.streaming.packing import packed, unpacked
from cargobike.monitoring.watching.far import Places
from cargobike.monitoring.watching.features import answered, features_of_log, fitted
from cargobike.monitoring.watching.windows import seconds_of

PREPARED: Final = "number int, start string, end string, ats binary, versions binary, features binary"
SUMMED: Final = "number int, cut int, state binary"

Batches = Iterable[pa.RecordBatch]
Cuts = Mapping[int, list[tuple[int, Places]]]
"""By the number of a piece: cuts that have rows in it, each with the places of those rows in the piece."""


def preparing(layout: Layout) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return what makes features of pieces, with the columns of a reference."""

    def prepare(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.to_pylist():
                yield _as_batch(piece["number"], piece["start"], piece["end"], piece["rows"], layout)

    return prepare


def _as_batch(number: int, start: str, end: str, data: bytes, layout: Layout) -> pa.RecordBatch:
    rows = answered(unpacked(data)) if data else None
    if rows is None or not rows.num_rows:
        ats, versions, features = np.empty(0), np.empty(0, np.int64), b""
    else:
        ats = np.asarray(seconds_of(rows["at"]), np.float64)
        versions = rows["version"].fill_null(0).to_numpy().astype(np.int64)
        features = packed(fitted(features_of_log(rows), layout))
    return pa.RecordBatch.from_pydict(
        {
            "number": pa.array([number], pa.int32()),
            "start": [start],
            "end": [end],
            "ats": pa.array([ats.tobytes()], pa.binary()),
            "versions": pa.array([versions.tobytes()], pa.binary()),
            "features": pa.array([features], pa.binary()),
        }
    )


def summing(layout: Layout, cuts: Cuts) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return what sums the rows of pieces, cut by cut."""

    def sum_up(batches: Batches) -> Iterator[pa.RecordBatch]:
        sums = Summing(layout)
        for batch in batches:
            for piece in batch.to_pylist():
                wanted = cuts.get(piece["number"], [])
                features = unpacked(piece["features"]) if wanted else None
                for cut, places in wanted:
                    state = sums.state_of(features.take(pa.array(places)))  # type: ignore[union-attr]
                    yield pa.RecordBatch.from_pydict(
                        {
                            "number": pa.array([piece["number"]], pa.int32()),
                            "cut": pa.array([cut], pa.int32()),
                            "state": pa.array([state.encode()], pa.binary()),
                        }
                    )

    return sum_up
