from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cargobike import models
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Logged
from cargobike.monitoring import Reference
from cargobike.monitoring.asking.choices import read_length, read_window
from cargobike.monitoring.asking.references import Chosen, asked_for, choose_reference
from cargobike.monitoring.front import _check_log
from cargobike.monitoring.watching.features import features_of_log, fitted
from cargobike.store.files import project as projects
from support.logged_requests import logging_to, take_some
from support.watched_rows import logged, small_reference, usual


@pytest.fixture(autouse=True)
def _project(tmp_path: Path) -> Iterator[None]:
    projects.use(tmp_path / "project")
    yield
    projects.use(None)


def choose(
    given: Any, log: Logged | None = None, columns: list[str] | None = None, asked: Callable[[str], bool] | None = None
) -> Chosen:
    here: ProjectFolder = projects.current()
    about = log or Logged()
    return choose_reference(
        given, about, "shop", here, window=20, false_alarms=0.05, columns=columns, seed=1, asked=asked
    )


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
    with pytest.raises(InvalidInputError, match="nothing in common with what shop is asked"):
        choose(usual(100), Logged(redacted=("age", "town")))


def test_what_requests_do_not_have_is_not_judged() -> None:
    table = {**usual(100), "label": np.ones(100)}
    chosen = choose(table, asked={"age", "town", "other"}.__contains__)
    assert chosen.reference.columns == ["age", "town"]
    assert chosen.left_out == {"label": "requests do not have it"}
    with pytest.raises(InvalidInputError, match="nothing in common with what shop is asked"):
        choose(table, asked={"other"}.__contains__)


def test_the_log_says_what_requests_have_and_before_it_the_signature() -> None:
    here = projects.prepare()
    _touch(here.root)
    assert asked_for(Logged(), "digits", here) is None
    models.register("grows", _grow, example=[{"age": 1.0, "town": "Oslo"}])
    by_signature = asked_for(Logged(model="grows", version=1), "digits", here)
    assert by_signature is not None
    names = ("age", "town[3]", "townhall", "output.output", "label")
    assert [by_signature(name) for name in names] == [True, True, False, True, False]
    with logging_to(here.root) as log:
        take_some(log, 3)
    by_log = asked_for(Logged(model="grows", version=1), "digits", here)
    assert by_log is not None
    assert [by_log(name) for name in ("x[0]", "x[3]", "output.score", "age")] == [True, False, True, False]


def _grow(rows: list[Any]) -> list[Any]:
    return [row["age"] + 1 for row in rows]


def _touch(root: Path) -> None:
    """Make a deployment that has logged nothing."""
    folder = root / "deployments" / "digits"
    folder.mkdir(parents=True)
    (folder / "mark").touch()


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
