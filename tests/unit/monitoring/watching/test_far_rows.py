"""Rows that are summed elsewhere give the windows and alarms of rows that are summed here."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.facts import encode_fact
from cargobike.monitoring.facts import Watched, WindowChoice
from cargobike.monitoring.states.state import State
from cargobike.monitoring.streaming.packing import packed
from cargobike.monitoring.streaming.tasks import preparing, summing
from cargobike.monitoring.watching.far import Places
from cargobike.monitoring.watching.watching import Outcome, Watching
from support.watched_rows import START, logged, small_reference

LAYOUT = small_reference().summing.layout


class FarTables:
    """Tables that are summed piece by piece, by the functions that executors run."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        pieces = [
            pa.RecordBatch.from_pylist([{"number": number, "start": "", "end": "", "rows": packed(table)}])
            for number, table in enumerate(tables)
        ]
        self._prepared = list(preparing(LAYOUT)(pieces))
        of_pieces = [batch.to_pylist()[0] for batch in self._prepared]
        ats = [np.frombuffer(piece["ats"], np.float64) for piece in of_pieces]
        self.ats = np.concatenate(ats)
        self.versions = np.concatenate([np.frombuffer(piece["versions"], np.int64) for piece in of_pieces])
        self._begins = np.cumsum([0, *map(len, ats)])

    def sum(self, cuts: Sequence[Places]) -> list[list[State]]:
        wanted: dict[int, list[tuple[int, Places]]] = {}
        for number, (begin, end) in enumerate(zip(self._begins[:-1], self._begins[1:], strict=True)):
            for cut, places in enumerate(cuts):
                inside = places[(places >= begin) & (places < end)] - begin
                if len(inside):
                    wanted.setdefault(number, []).append((cut, inside))
        states: list[list[State]] = [[] for _ in cuts]
        for batch in summing(LAYOUT, wanted)(self._prepared):
            for one in batch.to_pylist():
                states[one["cut"]].append(State.decode(one["state"], LAYOUT))
        return states


def plain(outcome: Outcome) -> list[Any]:
    return [rounded(msgspec.json.decode(encode_fact(fact))) for fact in outcome.facts]


def rounded(value: Any) -> Any:
    """Return plain data without the last digits, which depend on the order in which numbers are added."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.parametrize("choice", [WindowChoice(rows=40), WindowChoice(seconds=60.0, lateness_s=30.0)])
@given(
    cut_at=st.lists(st.integers(1, 299), max_size=6, unique=True).map(sorted),
    fed_at=st.integers(1, 6),
    versions=st.lists(st.integers(1, 2), min_size=3, max_size=3),
    seed=st.integers(0, 5),
)
@settings(max_examples=8, deadline=None)
def test_windows_are_the_same(
    choice: WindowChoice, cut_at: list[int], fed_at: int, versions: list[int], seed: int
) -> None:
    ats = START + np.arange(300) + np.random.default_rng(seed).normal(0, 5, 300)
    rows = logged(300, seed=seed, at=ats, version=np.repeat(versions, 100), moved=1.0 if seed % 2 else 0.0)
    least = 40 if choice.rows else 1000  # each size that is judged has to be calibrated, which takes a moment
    watched = Watched(subject="digits", window=choice, alarm="1 of 2", least=least)
    here, far = Watching(watched, small_reference()), Watching(watched, small_reference())
    bounds = [0, *cut_at, 300]
    pieces = [rows.slice(begin, end - begin) for begin, end in itertools.pairwise(bounds)]
    count = 0
    for start in range(0, len(pieces), fed_at):
        some = pieces[start : start + fed_at]
        outcome = here.feed(pa.concat_tables(some), str(start), START + 1000)
        other = far.feed(FarTables(some), str(start), START + 1000, dropped=0)
        assert plain(other) == plain(outcome)
        assert other.judgements.keys() == outcome.judgements.keys()
        count += len(outcome.judgements)
    assert plain(far.tick(START + 5000)) == plain(here.tick(START + 5000))
    assert (far.rows, far.position) == (here.rows, here.position) == (300, str(start))
    assert count or choice.seconds


def test_refused_requests_and_empty_pieces_count_nowhere() -> None:
    rows = logged(100)
    rows = rows.set_column(rows.column_names.index("status"), "status", pa.array([500] * 30 + [200] * 70, pa.int16()))
    watched = Watched(subject="digits", window=WindowChoice(rows=50), alarm="1 of 1")
    watching = Watching(watched, small_reference())
    outcome = watching.feed(FarTables([rows.slice(0, 30), rows.slice(30), rows.slice(0, 0)]), "x", START + 1000)
    assert list(outcome.judgements) == [1]
    assert watching.rows == 70


def test_states_of_other_rows_are_refused() -> None:
    class Wrong(FarTables):
        def sum(self, cuts: Sequence[Places]) -> list[list[State]]:
            return [[] for _ in cuts]

    watched = Watched(subject="digits", window=WindowChoice(rows=50), alarm="1 of 1")
    with pytest.raises(AssertionError, match="0 rows were summed elsewhere, and 50 are here"):
        Watching(watched, small_reference()).feed(Wrong([logged(60)]), "x", START + 1000)
