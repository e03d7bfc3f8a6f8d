from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Logged
from cargobike.monitoring import Reference
from cargobike.monitoring.asking.choices import read_length, read_window
from cargobike.monitoring.asking.references import Chosen, choose_reference
from cargobike.monitoring.front import _check_log
from cargobike.monitoring.watching.features import features_of_log, fitted
from cargobike.store.files import project as projects
from support.watched_rows import logged, small_reference, usual


@pytest.fixture(autouse=True)
def _project(tmp_path: Path) -> Iterator[None]:
    projects.use(tmp_path / "project")
    yield
    projects.use(None)


def choose(given: Any, log: Logged | None = None, columns: list[str] | None = None) -> Chosen:
    here: ProjectFolder = projects.current()
    about = log or Logged()
    return choose_reference(given, about, "shop", here, window=20, false_alarms=0.05, columns=columns, seed=1)


def test_a_reference_is_taken_as_it_is() -> None:
    assert choose(small_reference()).reference is small_reference()


def test_names_may_be_those_of_the_log() -> None:
    rows = {f"input.{name}": column for name, column in usual(100).items()}
    chosen = choose({**rows, "output.score": np.ones(100)}, columns=["input.age", "output.score"])
    assert chosen.reference.columns == ["age", "output.score"]


def test_vectors_constants_and_columns_without_values_can_be_judged() -> None:
    random = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.normal(size=300)), 3)
    table = pa.table({"x": vectors, "always": [7.0] * 100, "never": pa.nulls(100, pa.float64())})
    reference = choose(table).reference
    assert reference.columns == ["x[0]", "x[1]", "x[2]", "always", "never"]
    same = reference.judge(reference_rows := fitted(features_of_log(_log_of(table)), reference.summing.layout))
    assert reference_rows.num_rows == 100
    assert not same.alarm
    other = table.set_column(1, "always", pa.array([8.0] * 100))
    moved = reference.judge(fitted(features_of_log(_log_of(other)), reference.summing.layout))
    assert moved.alarm
    assert moved.features[0].feature == "always"


def _log_of(table: pa.Table) -> pa.Table:
    rows = logged(table.num_rows).drop_columns(["input.age", "input.town", "output.score"])
    for name in table.column_names:
        rows = rows.append_column(f"input.{name}", table[name])
    return rows


def test_what_the_log_leaves_out_is_not_judged_and_it_is_said() -> None:
    chosen = choose(usual(100), Logged(redacted=("age",)))
    assert chosen.reference.columns == ["town"]
    assert chosen.left_out == {"age": "the log leaves it out (redact)"}
    with pytest.raises(InvalidInputError, match=r"no column that can be judged|cannot be made"):
        choose(usual(100), Logged(redacted=("age", "town")))


def test_a_model_that_cannot_be_asked_leaves_its_inputs_watched() -> None:
    chosen = choose(usual(100), Logged(model="gone", version=3))
    assert chosen.reference.columns == ["age", "town"]
    assert "what the model predicts for the reference is not known" in chosen.left_out["output"]


def test_without_a_reference_it_is_said_what_to_give() -> None:
    with pytest.raises(InvalidInputError, match="Which model shop serves is not known here"):
        choose(None)
    with pytest.raises(InvalidInputError, match="Nothing says what the model buys:2 of shop was trained on"):
        choose(None, Logged(model="buys", version=2))


def test_a_deployment_without_a_log_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"shop keeps no log \(sample=0\)"):
        _check_log("shop", Logged(sample=0.0))
    _check_log("shop", Logged(sample=0.1))


@pytest.mark.parametrize(
    ("given", "rows", "seconds"),
    [(500, 500, 0.0), ("500", 500, 0.0), ("90s", 0, 90.0), ("1.5h", 0, 5400.0), (timedelta(minutes=2), 0, 120.0)],
)
def test_windows_are_rows_or_times(given: Any, rows: int, seconds: float) -> None:
    window = read_window(given)
    assert (window.rows, window.seconds) == (rows, seconds)


@pytest.mark.parametrize("given", ["1 month", "", -1, 0, "0.1s", None, True])
def test_windows_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises((InvalidInputError, TypeError), match="window"):
        read_window(given)


def test_lengths_of_time_are_not_below_zero() -> None:
    assert read_length("lateness", 0) == 0
    with pytest.raises(InvalidInputError, match="lateness=-1 is no length of time"):
        read_length("lateness", -1)


def test_a_saved_reference_remembers_sizes(tmp_path: Path) -> None:
    reference = Reference(usual(100), window=20)
    reference.calibrate(21)
    reference.save(tmp_path / "kept")
    assert Reference.load(tmp_path / "kept").calibrated_sizes == 2
