"""A reference judges windows of any kind and size, and refuses in words what it cannot judge."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cargobike import data, monitoring
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.monitoring import Judgement, Reference, State, merge_states


def rows_of(rows: int, seed: int, *, move: float = 0.0, cities: str = "abc") -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "age": random.normal(40 + 10 * move, 10, rows),
        "income": random.lognormal(10, 1, rows),
        "visits": random.poisson(3, rows),
        "city": random.choice(list(cities), rows),
        "member": random.random(rows) < 0.4,
    }


USUAL = rows_of(4000, 1)


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(USUAL, window=400)


def test_a_window_like_the_reference_is_no_alarm(reference: Reference) -> None:
    judgement = reference.judge(rows_of(400, 2))
    assert not judgement.alarm
    assert judgement.features == ()
    assert judgement.probability > 0.05
    assert (judgement.rows, judgement.reference_rows, judgement.calibrated_rows) == (400, 4000, 400)
    assert "No alarm: 400 rows" in repr(judgement)


def test_an_alarm_names_what_moved_and_how_far(reference: Reference) -> None:
    judgement = reference.judge(rows_of(400, 3, move=0.5))
    assert judgement.alarm
    assert judgement.probability <= 0.01
    (shift,) = judgement.features
    assert (shift.feature, shift.statistic, shift.is_certain) == ("age", "mean", True)
    assert shift.size == pytest.approx(0.5, abs=0.15)
    assert set(judgement.statistics) >= {"mean", "ks", "wasserstein", "psi", "js", "missing", "unseen", "mmd"}
    figure = judgement.statistics["psi"]["age"]
    assert figure.value > judgement.statistics["psi"]["income"].value
    (age,) = [column for column in judgement.columns if column.name == "age"]
    assert age.reference.mean == pytest.approx(np.mean(USUAL["age"]))
    assert age.now.deviation == pytest.approx(np.std(rows_of(400, 3, move=0.5)["age"]))
    assert sum(age.now.shares) == pytest.approx(1)
    assert "age: the mean moved by" in repr(judgement)


def test_categories_never_seen_before_are_named(reference: Reference) -> None:
    judgement = reference.judge(rows_of(400, 4, cities="abcx"))
    (shift,) = judgement.features
    assert (shift.feature, shift.statistic) == ("city", "unseen")
    (city,) = [column for column in judgement.columns if column.name == "city"]
    assert list(city.unseen) == ["x"]
    assert "never seen before: x" in repr(judgement)


def test_the_lowest_rate_still_sees_what_is_plain_in_any_statistic() -> None:
    strict = Reference(USUAL, window=100, false_alarms=0.005)
    assert [shift.feature for shift in strict.judge(rows_of(100, 4, cities="abcxyz")).features] == ["city"]
    lost = {**rows_of(100, 4), "age": [None] * 30 + list(USUAL["age"][:70])}
    assert [shift.feature for shift in strict.judge(lost).features] == ["age"]


def test_predictions_are_columns_like_others() -> None:
    random = np.random.default_rng(1)
    reference = Reference({"x": random.normal(size=2000), "prediction": random.random(2000)}, columns=["prediction"])
    judgement = reference.judge({"prediction": random.random(500) * 0.7})
    assert [shift.feature for shift in judgement.features] == ["prediction"]


def test_the_same_seed_gives_the_same_judgement(reference: Reference) -> None:
    window = rows_of(400, 5, move=0.1)
    assert Reference(USUAL, window=400).judge(window) == reference.judge(window)
    assert Reference(USUAL, window=400, seed=2).judge(window) != reference.judge(window)


def test_columns_may_come_in_another_order_and_among_others(reference: Reference) -> None:
    window = rows_of(400, 6)
    other = {"new": [1] * 400, **dict(reversed(window.items()))}
    judgement = reference.judge(other)
    assert judgement.ignored == ("new",)
    assert msgspec.structs.replace(judgement, ignored=()) == reference.judge(window)


def test_rows_are_read_from_anything_that_holds_rows(reference: Reference, tmp_path: Path) -> None:
    window = rows_of(300, 7)
    table = pa.table(window)
    expected = reference.judge(table)
    pq.write_table(table, tmp_path / "now.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "now.csv")
    kept = data.write(table, str(tmp_path / "kept"))
    given: list[Any] = [window, pd.DataFrame(window), pl.DataFrame(window), table.to_batches()[0]]
    given += [tmp_path / "now.parquet", str(tmp_path / "now.csv"), f"file://{tmp_path}/now.parquet", kept]
    for one in given:
        judgement = reference.judge(one)
        assert judgement.statistics["psi"] == expected.statistics["psi"], type(one)
    narrow = pa.table({**window, "visits": window["visits"].astype(np.int8)})
    assert reference.judge(narrow) == expected


def test_a_window_is_judged_by_the_states_of_its_parts(reference: Reference) -> None:
    table = pa.table(rows_of(400, 8, move=0.5))
    parts = [reference.summarize(table.slice(start, 150)) for start in (0, 150, 300)]
    stored = [reference.read_state(part.encode()) for part in reversed(parts)]
    judgement = reference.judge_state(merge_states(stored))
    assert judgement.features == reference.judge(table).features
    with pytest.raises(InvalidInputError, match="no state of this reference"):
        reference.read_state(b"nonsense")
    other = Reference({"x": np.arange(100.0)}, window=5)
    with pytest.raises(InvalidInputError, match="of another reference"):
        reference.judge_state(other.state)


def test_windows_are_cut_across_the_groups_of_a_file(reference: Reference, tmp_path: Path) -> None:
    table = pa.concat_tables([pa.table(rows_of(800, 9)), pa.table(rows_of(500, 10, move=1))])
    pq.write_table(table, tmp_path / "stream.parquet", row_group_size=170)
    judgements = reference.judge_windows(tmp_path / "stream.parquet")
    assert [judgement.rows for judgement in judgements] == [400, 400, 400, 100]
    assert [judgement.alarm for judgement in judgements] == [False, False, True, True]
    assert judgements[2].features == reference.judge(table.slice(800, 400)).features


def test_a_reference_that_was_saved_judges_as_before(reference: Reference, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "usual.reference"
    window = rows_of(400, 11, move=0.2)
    expected, small = reference.judge(window), reference.judge(rows_of(7, 1))
    reference.save(path)
    assert path.stat().st_size < 2_000_000
    loaded = Reference.load(path)
    assert loaded.judge(window) == expected
    assert loaded.judge(rows_of(7, 1)) == small
    assert repr(loaded) == repr(reference)
    assert loaded.judge(rows_of(9, 1)) == reference.judge(rows_of(9, 1))  # a size that is calibrated anew
    reference.save("memory://monitoring/usual")
    assert Reference.load("memory://monitoring/usual").columns == reference.columns


def test_judgements_are_plain_data(reference: Reference) -> None:
    judgement = reference.judge(rows_of(400, 12, move=1))
    assert msgspec.json.decode(msgspec.json.encode(judgement), type=Judgement) == judgement


@pytest.mark.parametrize("damage", [b"", b"pickle", b"cargobike reference 1\n", b"cargobike reference 1\n\x81\xa1"])
def test_a_file_that_is_no_reference_is_refused(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(damage)
    with pytest.raises(StoreError, match=r"no reference|damaged"):
        Reference.load(tmp_path / "bad")


def test_a_cut_file_and_a_missing_one_are_refused(reference: Reference, tmp_path: Path) -> None:
    reference.save(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for length in range(30, len(whole), len(whole) // 7):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(StoreError, match="damaged"):
            Reference.load(tmp_path / "cut")
    with pytest.raises(NotFoundError, match="There is no reference at"):
        Reference.load(tmp_path / "none")


def test_all_columns_that_do_not_fit_are_named_at_once(reference: Reference) -> None:
    window = rows_of(50, 13)
    del window["income"]
    window["age"] = ["old"] * 50
    window["city"] = range(50)
    with pytest.raises(InvalidInputError, match="cannot be compared") as raised:
        reference.judge(window)
    assert len(raised.value.mistakes) == 3
    assert "'income' is missing; there are 'age', 'visits'" in str(raised.value)
    assert "'age' has string values, and double in the reference" in str(raised.value)


def test_times_are_judged_only_if_asked_for() -> None:
    start = datetime.datetime(2026, 1, 1)
    times = [start + datetime.timedelta(minutes=place) for place in range(100)]
    table = pa.table({"at": times, "x": range(100), "picture": [b"1"] * 100, "list": [[1]] * 100})
    reference = Reference(table, window=20)
    assert reference.columns == ["x"]
    assert list(reference.skipped) == ["at", "picture", "list"]
    assert "always move on" in reference.skipped["at"]
    judgement = Reference(table, window=20, columns=["at"]).judge({"at": times[:20]})
    assert judgement.features[0].feature == "at"


def test_wrong_columns_are_named_with_the_nearest() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)no column 'agee'. Did you mean 'age'.*'blob' cannot be judged"):
        Reference({"age": np.arange(30), "blob": [b"x"] * 30}, columns=["agee", "blob"])
    with pytest.raises(InvalidInputError, match="no column that can be judged"):
        Reference({"blob": [b"x"] * 30})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"x": np.arange(3)}, "has 3 rows; what is usual can be learned from 20 on"),
        ({"x": []}, "The reference has no rows"),
        (17, "Rows cannot be read from builtins.int"),
    ],
)
def test_a_reference_of_nothing_is_refused(given: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Reference(given)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"false_alarms": 0}, "false_alarms=0 was given"),
        ({"false_alarms": 0.9}, "from 0.005 to 0.5"),
        ({"false_alarms": "few"}, "must be a number"),
        ({"window": 0}, "window"),
        ({"window": 1.5}, "window"),
        ({"seed": -1}, "seed"),
        ({"columns": "age"}, "columns"),
    ],
)
def test_wrong_choices_are_refused_in_words(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Reference(USUAL, **choices)


def test_an_empty_window_is_refused_and_one_of_a_single_row_is_judged(reference: Reference) -> None:
    with pytest.raises(InvalidInputError, match="The window has no rows"):
        reference.judge(pa.table(USUAL).slice(0, 0))
    with pytest.raises(InvalidInputError, match="The window has no rows"):
        reference.judge_windows(pa.table(USUAL).slice(0, 0))
    assert not reference.judge(pa.table(USUAL).slice(0, 1)).alarm
    extreme = {**{name: values[:3] for name, values in USUAL.items()}, "age": [1e9, 1e9, 1e9]}
    assert reference.judge(extreme).features[0].feature == "age"
    with pytest.raises(NotFoundError, match=r"nowhere\.parquet"):
        reference.judge("nowhere.parquet")


def test_constant_missing_and_infinite_columns() -> None:
    random = np.random.default_rng(2)
    table = {
        "constant": [3] * 500,
        "nothing": pa.nulls(500),
        "gone": pa.nulls(500, pa.float64()),
        "x": [*random.normal(size=498), float("inf"), float("nan")],
        "city": pa.nulls(500, pa.string()),
    }
    reference = Reference(table, window=100)
    now = {"constant": [3] * 100, "nothing": pa.nulls(100), "gone": pa.nulls(100), "city": pa.nulls(100)}
    quiet = {**now, "x": random.normal(size=100)}
    assert not reference.judge(quiet).alarm
    (x,) = [column for column in reference.judge(quiet).columns if column.name == "x"]
    assert x.reference.infinite == 1
    assert x.reference.mean == pytest.approx(np.mean(table["x"][:498]))
    filled = {**quiet, "constant": [4] * 100, "gone": [1.0] * 100, "city": ["Rome"] * 100}
    shifts = {shift.feature: shift.statistic for shift in reference.judge(filled).features}
    assert shifts.keys() == {"constant", "gone", "city"}
    assert shifts["gone"] == "missing"
    lost = {**quiet, "x": [float("nan")] * 100}
    assert [shift.feature for shift in reference.judge(lost).features] == ["x"]
    everywhere = {**quiet, "x": [float("inf")] * 100}
    judgement = reference.judge(everywhere)
    assert [shift.feature for shift in judgement.features] == ["x"]
    assert "100 infinite" in repr(judgement)
    assert "x" in judgement._repr_html_()


def test_one_odd_row_in_a_column_that_never_varied_is_no_alarm_two_percent_are() -> None:
    random = np.random.default_rng(2)
    reference = Reference({"flag": np.zeros(5000), "x": random.normal(size=5000)}, window=1000)
    flags = np.zeros(1000)
    flags[0] = 1
    window = {"flag": flags, "x": random.normal(size=1000)}
    assert "flag" not in [shift.feature for shift in reference.judge(window).features]
    flags[:20] = 1
    assert [shift.feature for shift in reference.judge(window).features] == ["flag"]


def test_a_reference_larger_than_what_is_learned_from_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cargobike.monitoring.states.making.LEARNED_FROM", 1000)
    monkeypatch.setattr("cargobike.monitoring.states.making.MOST_ROWS", 500)
    pq.write_table(pa.table(USUAL), tmp_path / "usual.parquet", row_group_size=300)
    reference = Reference(tmp_path / "usual.parquet", window=200)
    assert reference.rows == 4000
    assert not reference.judge(rows_of(200, 15)).alarm
    assert reference.judge(rows_of(200, 15, move=1)).alarm


def test_the_door_has_these_names() -> None:
    assert set(dir(monitoring)) == set(monitoring.__all__)
    assert monitoring.State is State
