"""Training datasets are written once, split as asked, pinned to what they came from, and read by loaders."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike import data, experiment, features, project
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.features.datasets.splitting import split_rows


@pytest.fixture(autouse=True)
def _league(tmp_path: Path) -> Any:
    project.use(tmp_path / "project")
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    days = pd.to_datetime(["2026-01-01"] * 10)
    budgets = [float(number) for number in range(10)]
    teams.insert(pd.DataFrame({"team_id": range(10), "at": days, "budget": budgets, "city": ["Rome", "Oslo"] * 5}))
    yield
    project.use(None)


def labels(rows: int = 40) -> pd.DataFrame:
    days = pd.date_range("2026-02-01", periods=rows, freq="D")
    return pd.DataFrame({"team_id": np.arange(rows) % 10, "when": days, "value": np.arange(rows, dtype=np.float32)})


def scaled() -> features.View:
    return features.create_view(
        "team_value",
        features=["budget", "city"],
        label="value",
        transformations={"budget": "standardize", "city": "ordinal"},
    )


def test_parts_are_split_fitted_on_the_training_part_and_read_again() -> None:
    view = scaled()
    dataset = view.create_training_dataset("team_value", labels(), split={"train": 0.75, "test": 0.25}, seed=7)

    assert (dataset.id, dataset.num_rows, dataset.commits) == ("team_value:1", 40, {"teams": 0})
    train, test = dataset["train"].to_pandas(), dataset["test"].to_pandas()
    assert (len(train), len(test)) == (30, 10)
    assert sorted([*train["value"], *test["value"]]) == list(range(40))
    assert abs(train["budget"].mean()) < 1e-9
    assert abs(train["budget"].std(ddof=0) - 1) < 1e-9
    again = features.training_dataset("team_value:1")
    assert again["train"].to_pandas().equals(train)
    assert [each.id for each in features.list_training_datasets()] == ["team_value:1"]
    # What a model was trained with is what it is served with.
    team = int(train["team_id"][0])
    assert view.vector(team_id=team) == {"budget": train["budget"][0], "city": train["city"][0]}
    view.close()


def test_the_same_call_gives_the_same_rows_whatever_came_since() -> None:
    view = scaled()
    first = view.create_training_dataset("d", labels(), split={"train": 0.5, "test": 0.5}, seed=3)
    second = view.create_training_dataset("d", labels(), split={"train": 0.5, "test": 0.5}, seed=3)
    other = view.create_training_dataset("d", labels(), split={"train": 0.5, "test": 0.5}, seed=4)
    assert (first.version, second.version) == (1, 2)
    assert first.fingerprint == second.fingerprint != other.fingerprint

    before = first["train"].to_pandas()
    features.group("teams").insert({"team_id": [0], "at": ["2026-01-20"], "budget": [1e6], "city": ["Rome"]})
    changed = view.create_training_dataset("d", labels(), split={"train": 0.5, "test": 0.5}, seed=3)
    assert changed.commits == {"teams": 1}
    assert changed.fingerprint != first.fingerprint
    assert features.training_dataset("d", 1)["train"].to_pandas().equals(before)


def test_look_ups_use_what_was_fitted_last_or_what_is_asked_for() -> None:
    view = scaled()
    view.create_training_dataset("d", labels(10))
    features.group("teams").insert({"team_id": [0], "at": ["2026-01-20"], "budget": [1000.0], "city": ["Rome"]})
    view.create_training_dataset("d", labels(10))

    first, second = view.fitted_on("d:1"), view.fitted_on("d:2")
    assert first.vector(team_id=5)["budget"] != second.vector(team_id=5)["budget"]
    assert features.view("team_value").vector(team_id=5) == second.vector(team_id=5)
    with pytest.raises(NotFoundError, match="was not fitted for a training dataset 'd:9'"):
        view.fitted_on("d:9")
    for each in (first, second):
        each.close()


def test_a_loader_reads_a_dataset_and_an_experiment_records_it() -> None:
    view = features.create_view("plain", features=["budget"], label="value")
    dataset = view.create_training_dataset("plain", labels(), split={"train": 0.9, "test": 0.1}, seed=1)

    loader = data.Loader(dataset, batch_size=8, columns={"x": ["budget"], "y": "value"})
    assert sum(len(batch["y"]) for batch in loader) == 36
    assert sum(len(batch["value"]) for batch in data.Loader(dataset["test"])) == 4

    def train(data: Any) -> float:
        return float(sum(batch["value"].sum() for batch in data))

    result = experiment.launch(train, {}, data=dataset, num_trials=1, workers=0)
    assert result.best is not None
    assert result.best.metric == dataset["train"].to_pandas()["value"].sum()
    feeding = result.asked.feeding
    assert (feeding.kind, feeding.source, feeding.version, feeding.part) == ("dataset", "plain", "1", "train")
    assert (feeding.label, feeding.rows) == ("plain:1/train", 36)
    assert feeding.fingerprint == dataset["train"].fingerprint


@pytest.mark.parametrize("form", ["csv", "tfrecord", "numpy", "delta"])
def test_other_formats_are_written_beside_the_table(form: str) -> None:
    view = features.create_view("plain", features=["budget", "city"], label="value")
    part = view.create_training_dataset("f", labels(6), format=form)["train"]
    table = part.to_arrow()

    assert part.url.endswith(f"datasets/f/1/train.{form}")
    if form == "numpy":
        assert np.load(f"{part.url}/city.npy").tolist() == table["city"].to_pylist()
        assert np.load(f"{part.url}/budget.npy").tolist() == table["budget"].to_pylist()
    elif form == "delta":
        assert deltalake.DeltaTable(part.url).to_pyarrow_table()["budget"].to_pylist() == table["budget"].to_pylist()
    else:
        rows = [row for batch in data.Loader(part.url, columns=["budget"]) for row in batch["budget"].tolist()]
        assert rows == table["budget"].to_pylist()


_shares = st.sampled_from([{"train": 1.0}, {"train": 0.5, "test": 0.5}, {"a": 0.6, "b": 0.2, "c": 0.2}])


@given(
    st.permutations([(number % 20, number % 30) for number in range(60)]),
    _shares,
    st.sampled_from(["rows", "time", "key"]),
    st.integers(0, 99),
)
def test_every_row_is_in_one_part_and_what_belongs_together_stays_together(
    rows: list[tuple[int, int]], split: dict[str, float], by: str, seed: int
) -> None:
    table = pa.table({"key": [key for key, _ in rows], "time": pa.array([time for _, time in rows], pa.timestamp("s"))})
    parts = split_rows(table, split, seed=seed, by=by, time="time", keys=["key"])
    again = split_rows(table, split, seed=seed, by=by, time="time", keys=["key"])

    assert sorted(number for numbers in parts.values() for number in numbers.tolist()) == list(range(len(rows)))
    assert all(np.array_equal(parts[name], again[name]) for name in split)
    of = {number: name for name, numbers in parts.items() for number in numbers.tolist()}
    if by == "key":
        assert all(len({of[n] for n, row in enumerate(rows) if row[0] == key}) == 1 for key, _ in rows)
    if by == "time":
        order = list(split)
        moments = [(order.index(of[number]), time) for number, (_, time) in enumerate(rows)]
        assert all(a[1] < b[1] for a in moments for b in moments if a[0] < b[0])
    if by == "rows":
        assert abs(len(parts[next(iter(split))]) - len(rows) * next(iter(split.values()))) <= 1


def test_mistakes_are_explained_and_leave_nothing_visible() -> None:
    view = scaled()
    with pytest.raises(InvalidInputError) as error:
        view.create_training_dataset("d", labels(), split={"Train": 0.5, "test": -1}, by="whn")
    assert len(error.value.mistakes) == 3
    with pytest.raises(InvalidInputError, match=r"The shares are 0\.7 together; they must be 1"):
        view.create_training_dataset("d", labels(), split={"train": 0.5, "test": 0.2})
    with pytest.raises(InvalidInputError, match="format='parket' was given"):
        view.create_training_dataset("d", labels(), format="parket")
    with pytest.raises(InvalidInputError, match="test would have no rows"):
        view.create_training_dataset("d", labels(2), split={"train": 0.9, "test": 0.1})
    with pytest.raises(InvalidInputError, match="There are no rows"):
        view.create_training_dataset("d", labels(4).head(0))
    with pytest.raises(NotFoundError, match="There is no training dataset 'd'; there are none yet"):
        features.training_dataset("d")
    view.create_training_dataset("d", labels())
    with pytest.raises(NotFoundError, match="has no part 'tset'"):
        features.training_dataset("d")["tset"]
    with pytest.raises(NotFoundError, match="no version 9; it has 1"):
        features.training_dataset("d:9")


def test_a_dataset_whose_writing_failed_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    view = scaled()

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cargobike.features.datasets.claims.commit_dataset", fail)
    with pytest.raises(KeyboardInterrupt):
        view.create_training_dataset("d", labels())
    assert features.list_training_datasets() == []
    monkeypatch.undo()
    assert view.create_training_dataset("d", labels()).version == 1


def test_a_project_on_storage_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    project.use(f"memory://league-{uuid.uuid4().hex}")
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [1.0, 2.0]})
    view = features.create_view("v", features=["budget"], label="value", transformations={"budget": "min_max"})
    rows = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1.0, 2.0]}
    dataset = view.create_training_dataset("d", rows, format="csv")

    assert dataset["train"].to_pandas()["budget"].tolist() == [0.0, 1.0]
    assert [batch["value"].tolist() for batch in data.Loader(dataset)] == [[1.0, 2.0]]
    assert view.vector(team_id=2) == {"budget": 1.0}
    assert features.group("teams").verify().is_equal
    view.close()
