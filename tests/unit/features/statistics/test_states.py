"""States of statistics: what they say is so, and merging parts gives what one state of all rows would have given."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.features.hashing import hash_rows, hash_values
from cargobike.features.statistics import quantiles
from cargobike.features.statistics.report import Statistics
from cargobike.features.statistics.states import TableState, make_state, merge_states


def report(state: TableState) -> Statistics:
    return Statistics("some", 1, 0, state)


def table(rng: np.random.Generator, rows: int, scale: float = 1.0) -> pa.Table:
    x = rng.normal(5.0, 2.0, rows) * scale
    y = -x + rng.normal(0.0, 0.5, rows) * scale
    return pa.table(
        {
            "x": x,
            "y": pa.array(np.where(rng.random(rows) < 0.1, np.nan, y), from_pandas=True),
            "constant": np.full(rows, 0.1),
            "n": rng.integers(0, 10**9, rows),
            "few": rng.integers(0, 20, rows),
            "word": pa.array(rng.choice(["a", "b", "c"], rows, p=[0.7, 0.2, 0.1]), pa.string()),
            "name": pa.array([f"name-{number}" for number in rng.integers(0, 10**6, rows)], pa.string()),
            "flag": rng.random(rows) < 0.25,
            "at": pa.array(rng.integers(16 * 10**14, 17 * 10**14, rows), pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )


def test_statistics_are_those_of_the_rows() -> None:
    rows = table(np.random.default_rng(3), 20_000)
    found = report(make_state(rows))
    x, y = (rows.column(name).to_numpy() for name in ("x", "y"))
    assert found.rows == 20_000
    assert (found["x"].count, found["x"].nulls, found["y"].nulls) == (20_000, 0, rows.column("y").null_count)
    assert (found["x"].min, found["x"].max) == (x.min(), x.max())
    assert (found["x"].mean, found["x"].std) == pytest.approx((x.mean(), x.std(ddof=1)))
    for share in (0.0, 0.01, 0.25, 0.5, 0.9, 1.0):
        value = found["x"].quantile(share)
        assert abs(np.mean(x <= value) - share) < 0.006
    assert found["n"].distinct == pytest.approx(len(set(rows.column("n").to_pylist())), rel=0.06)
    assert found["name"].distinct == pytest.approx(len(set(rows.column("name").to_pylist())), rel=0.06)
    assert (found["few"].distinct, found["flag"].distinct, found["constant"].distinct) == (20, 2, 1)
    assert found["word"].common == {word: rows.column("word").to_pylist().count(word) for word in "abc"}
    edges, counts = found["x"].histogram()
    assert sum(counts) == 20_000
    assert np.abs(np.array(counts) - np.histogram(x, bins=edges)[0]).max() < 200
    there = ~np.isnan(y)
    assert found.correlations["x"]["y"] == pytest.approx(np.corrcoef(x[there], y[there])[0, 1])
    assert found.correlations["x"]["constant"] is None
    assert isinstance(found["at"].min, datetime)
    assert found["at"].min == rows.column("at").to_pandas().min().to_pydatetime()


def test_large_means_lose_no_digits() -> None:
    rng = np.random.default_rng(5)
    parts = [pa.table({"x": 1e9 + rng.normal(0, 1, 500), "y": 1e9 + rng.normal(0, 1, 500)}) for _ in range(20)]
    merged = report(merge_states([make_state(part) for part in parts]))
    x, y = (pa.concat_tables(parts).column(name).to_numpy() for name in ("x", "y"))
    assert merged["x"].std == pytest.approx(x.std(ddof=1), rel=1e-6)
    assert merged.correlations["x"]["y"] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-6)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 700), min_size=1, max_size=8), st.sampled_from([1e-9, 1.0, 1e12]))
def test_merged_states_are_what_one_state_would_be(seed: int, sizes: list[int], scale: float) -> None:
    rng = np.random.default_rng(seed)
    parts = [table(rng, size, scale) for size in sizes]
    together, at_once = merge_states([make_state(part) for part in parts]), make_state(pa.concat_tables(parts))
    assert together.rows == at_once.rows
    for name, column in at_once.columns.items():
        merged = together.columns[name]
        for exact in ("kind", "count", "nulls", "odd", "finite", "low", "high", "different"):
            assert getattr(merged, exact) == getattr(column, exact), (name, exact)
        if not column.is_cut:
            assert merged.common == column.common
        assert merged.mean == pytest.approx(column.mean, rel=1e-9, abs=1e-9 * scale)
        assert merged.squares == pytest.approx(column.squares, rel=1e-6, abs=1e-9 * scale)
        check_ranks(merged.finite, np.frombuffer(merged.summary), pa.concat_tables(parts).column(name))
    first, second = report(together).correlations, report(at_once).correlations
    if sum(sizes) > 2:
        assert first.keys() == second.keys()
        for one, row in second.items():
            for other, value in row.items():
                assert first[one][other] == (None if value is None else pytest.approx(value, abs=1e-6))


def check_ranks(count: int, summary: Any, column: pa.ChunkedArray) -> None:
    """Every quantile has the rank that it should have, within what the module promises after one merge."""
    if not count:
        return
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values = np.sort(column.drop_null().to_numpy().astype(float))
    for share in np.linspace(0, 1, 21):
        value = quantiles.quantile(count, summary, float(share))
        low, high = np.searchsorted(values, value, "left"), np.searchsorted(values, value, "right")
        allowed = 2 * count / quantiles.SIZE + 2
        assert low - allowed <= share * (count - 1) <= high + allowed


def test_states_survive_being_written_down() -> None:
    state = make_state(table(np.random.default_rng(1), 1000))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=TableState) == state
    assert len(msgspec.msgpack.encode(state)) < 40_000


def test_odd_numbers_count_and_spoil_nothing() -> None:
    odd = pa.table(
        {"x": [1.0, math.nan, math.inf, -math.inf, None, 3.0], "big": [1e308, 1e308, 1e308, -1e308, 1e308, 1e308]}
    )
    found = report(make_state(odd))
    assert (found["x"].count, found["x"].odd, found["x"].nulls) == (5, 3, 1)
    assert (found["x"].min, found["x"].mean, found["x"].max) == (1.0, 2.0, 3.0)
    assert found["big"].mean == pytest.approx(2 * (1e308 / 3))
    assert msgspec.json.encode(found.as_json())


def test_no_rows_have_statistics_too() -> None:
    found = report(make_state(table(np.random.default_rng(1), 0)))
    assert (found.rows, found["x"].mean, found["x"].quantile(0.5), found["word"].common) == (0, None, None, {})
    assert found["x"].svg() == ""
    merged = merge_states([make_state(pa.table({"x": [1.0]})), make_state(pa.table({"x": [2.0], "new": ["a"]}))])
    assert (merged.columns["new"].count, merged.columns["new"].nulls) == (1, 1)


def test_figures_cannot_be_broken_by_names() -> None:
    shown = report(make_state(pa.table({"<b>x</b>": [1.0, 2.0], 'q"': ["<i>", "y"]})))._repr_html_()
    assert "<b>x</b>" not in shown
    assert 'q"' not in shown
    assert shown.count("<svg") == 2


def test_hashes_never_change() -> None:
    known = hash_values(pa.array(["", "a", "12345678", "a longer text than eight bytes", None]))
    assert [f"{value:016x}" for value in known.tolist()] == HASHES
    times = pa.array([datetime(2026, 5, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert [f"{value:016x}" for value in hash_rows([pa.array([7]), times]).tolist()] == ROW
    assert hash_values(pa.array([7], pa.int8())).tolist() == hash_values(pa.array([7], pa.int64())).tolist()
    assert hash_values(pa.array([0.0])).tolist() == hash_values(pa.array([-0.0])).tolist()


HASHES = ["df30f36f6b91d29c", "ef754691dbf462e7", "0e1340ade06bce95", "36ab6e8ed21fa0b1", "9e3779b97f4a7c15"]
ROW = ["5dc98ac06601be6e"]


@settings(max_examples=50)
@given(st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=30), st.integers(0, 5))
def test_equal_texts_have_equal_hashes_wherever_they_lie(texts: list[str | None], start: int) -> None:
    whole = hash_values(pa.array(texts, pa.string()))
    assert hash_values(pa.array(texts, pa.string()).slice(start)).tolist() == whole.tolist()[start:]
    different = dict(zip(texts, whole.tolist(), strict=True))
    assert len(set(different.values())) == len(different)
