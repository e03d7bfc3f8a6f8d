from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cargobike.monitoring.watching.features import answered, features_of, features_of_log
from support.watched_rows import logged


def with_column(name: str, values: Any) -> pa.Table:
    rows = logged(len(values)).drop_columns(["input.age", "input.town", "output.score"])
    if name in rows.column_names:
        return rows.set_column(rows.column_names.index(name), name, values)
    return rows.append_column(name, values)


def test_names_are_those_of_the_reference() -> None:
    assert features_of_log(logged(3)).column_names == ["age", "town", "output.score"]
    assert features_of(pa.table({"input.age": [1], "town": ["Oslo"]})).column_names == ["age", "town"]


def test_short_vectors_become_columns_and_long_ones_figures() -> None:
    short = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0)), 3)
    features = features_of_log(with_column("input.x", short))
    assert features.to_pydict() == {"x[0]": [0.0, 3.0], "x[1]": [1.0, 4.0], "x[2]": [2.0, 5.0]}
    long = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(200.0)), 100)
    figures = features_of_log(with_column("input.x", long))
    assert figures.column_names == ["x.mean", "x.deviation", "x.lowest", "x.highest"]
    assert figures["x.mean"].to_pylist() == [49.5, 149.5]
    ragged = features_of_log(with_column("input.x", pa.array([[1.0, 3.0], None])))
    assert ragged["x.highest"].to_pylist() == [3.0, None]


def test_a_log_with_json_alone_has_features_too() -> None:
    texts = pa.array(['{"age": 3, "home": {"town": "Oslo"}, "v": [1, 2]}', "not JSON", None])
    features = features_of_log(with_column("input", texts))
    assert features.to_pydict() == {
        "age": [3.0, None, None],
        "home.town": ["Oslo", None, None],
        "v[0]": [1.0, None, None],
        "v[1]": [2.0, None, None],
    }
    numbers = features_of_log(with_column("output", pa.array(["0.5", "1"])))
    assert numbers.to_pydict() == {"output.value": [0.5, 1.0]}


def test_requests_that_failed_are_not_watched() -> None:
    rows = logged(3)
    status = pa.array([200, 500, 200], pa.int16())
    rows = rows.set_column(rows.column_names.index("status"), "status", status)
    assert answered(rows)["request_id"].to_pylist() == ["r0", "r2"]
