"""What is given to `launch(data=…)`: where it is read, what is recorded of it, and what is refused at once."""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike import data, experiment
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.feeding import Feed, Placed
from cargobike.data.feeding import check, describe
from cargobike.data.followed import FollowedLoader, open_loader
from cargobike.data.loading.loader import Loader
from cargobike.data.shard import Shard
from cargobike.data.tables.addresses import named as address_named
from cargobike.data.tables.writing import write, write_to
from cargobike.results import compare
from support.far_engine import FarEngine

COLUMNS = {"id": np.arange(100), "x": np.arange(100) / 100}


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(COLUMNS), path, row_group_size=10)
    return str(path)


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path / "project")


def sent(feed: Feed) -> Feed:
    """Return a feed as it arrives at a worker."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(feed), type=Feed)


def bring_nothing(path: str) -> None:
    raise AssertionError(f"{path} was brought")


def halved(batch: dict[str, Any]) -> dict[str, Any]:
    return {"id": batch["id"], "half": batch["x"] / 2}


def test_a_loader_travels_with_its_options_and_its_transform(parquet: str, project: ProjectFolder) -> None:
    given = Loader(
        parquet,
        batch_size=8,
        columns=["id", "x"],
        shuffle=True,
        seed=3,
        transform=halved,
        last="drop",
        nulls={"x": 0.5},
    )
    feed = sent(describe(given, project, ranks=2))
    assert not project.root.exists(), "what workers can read is not copied"
    shares = [open_loader(feed, project.root, rank, 2, bring_nothing) for rank in range(2)]
    seen = [batch["id"].tolist() for share in shares for batch in share]
    assert seen == [batch["id"].tolist() for rank in range(2) for batch in given.for_rank(rank, 2)]
    assert {len(ids) for ids in seen} == {8}
    assert set(next(iter(shares[0]))) == {"id", "half"}
    assert isinstance(shares[0], Placed)
    assert feed.options == {
        "batch_size": 8,
        "columns": ["id", "x"],
        "shuffle": True,
        "seed": 3,
        "transform": "halved",
        "last": "drop",
        "nulls": {"x": 0.5},
    }
    assert (feed.source, feed.num_rows, feed.fingerprint) == (parquet, 100, given.source.fingerprint)


def test_a_loader_that_has_begun_goes_on_where_it_is(parquet: str, project: ProjectFolder) -> None:
    given = Loader(parquet, batch_size=30)
    next(iter(given))
    opened = open_loader(sent(describe(given, project)), project.root, 0, 1, bring_nothing)
    assert [len(batch["id"]) for batch in opened] == [30, 30, 10]


@pytest.mark.parametrize("kind", ["path", "Path", "glob", "folder", "paths"])
def test_files_are_read_where_they_lie(parquet: str, project: ProjectFolder, kind: str) -> None:
    folder = Path(parquet).parent / "in"
    folder.mkdir()
    os.rename(parquet, folder / "a.parquet")
    path = folder / "a.parquet"
    given: dict[str, Any] = {"path": str(path), "Path": path, "glob": f"{folder}/*.parquet", "folder": folder}
    feed = sent(describe(given.get(kind, [str(path)]), project))
    assert (feed.folder, feed.num_rows) == ("", 100)
    assert not project.root.exists()
    shard = Shard(feed, project.root, 0, 2, bring_nothing)
    assert (len(shard), shard.total_rows, shard.steps) == (50, 100, 1)
    assert shard.read(["id"])["id"].to_pylist() == list(range(50))
    assert [batch["id"].tolist() for batch in shard] == [list(range(50))]
    assert [batch.num_rows for batch in shard.batches(20)] == [20, 20, 10]


@pytest.mark.parametrize("kind", ["arrow", "arrays", "pandas", "a loader"])
def test_what_only_this_process_has_is_written_into_the_project(project: ProjectFolder, kind: str) -> None:
    table = pa.table(COLUMNS)
    given: dict[str, Any] = {"arrow": table, "arrays": COLUMNS, "pandas": table.to_pandas()}
    given["a loader"] = Loader(table, batch_size=64)
    feed = sent(describe(given[kind], project))
    brought: list[str] = []
    opener = open_loader if kind == "a loader" else Shard
    opened: FollowedLoader = opener(feed, project.root, 0, 1, brought.append)
    assert [row for batch in opened for row in batch["id"].tolist()] == list(range(100))
    assert brought == [f"{feed.folder}/{name}" for name in feed.names]
    check(feed, project.root)
    (project.root / feed.folder / feed.names[0]).unlink()
    with pytest.raises(InvalidInputError, match=r"lacks 1 file, such as .*Launch the experiment anew"):
        check(feed, project.root)


def test_files_that_other_machines_do_not_see_are_written_into_the_project(
    parquet: str, project: ProjectFolder
) -> None:
    feed = describe(Loader(parquet, batch_size=7), project, travels=True)
    assert feed.folder.startswith("data/")
    assert sum(len(batch["id"]) for batch in open_loader(sent(feed), project.root, 0, 1, lambda path: None)) == 100


def test_a_table_that_travels_keeps_its_name_and_a_copy_has_no_place_in_it(
    tmp_path: Path, project: ProjectFolder
) -> None:
    elsewhere = write(COLUMNS, tmp_path / "far" / "points")
    feed = describe(Loader(elsewhere, batch_size=7), project, travels=True)
    assert feed.folder.startswith("data/"), "its files are copied into the project"
    assert (feed.kind, feed.source, feed.version) == ("table", str(tmp_path / "far" / "points"), "1")
    begun = Loader(elsewhere, batch_size=7)
    next(iter(begun))
    with pytest.raises(InvalidInputError, match="in the middle of an epoch of rows that workers cannot read"):
        describe(begun, project, travels=True)

    named = write_to(address_named("points", project), COLUMNS)
    begun = Loader(named, batch_size=30)
    next(iter(begun))
    feed = describe(begun, project, travels=True)
    assert (feed.folder, feed.label) == ("data/points", "points:1")
    opened = open_loader(sent(feed), project.root, 0, 1, lambda path: None)
    assert sum(len(batch["id"]) for batch in opened) == 70, "the files are those of the table, and so is the place"


def test_tensors_keep_their_shape_on_their_way(project: ProjectFolder) -> None:
    images = np.arange(10 * 6, dtype=np.uint8).reshape(10, 2, 3)
    shard = Shard(sent(describe({"image": images}, project)), project.root, 0, 1, lambda path: None)
    (batch,) = list(shard)
    assert np.array_equal(batch["image"], images)


def test_columns_that_make_no_arrays_can_still_be_read_as_arrow(project: ProjectFolder) -> None:
    table = pa.table({"s": [{"a": 1}, None]})
    shard = Shard(sent(describe(table, project)), project.root, 0, 1, lambda path: None)
    assert shard.state_dict()["epoch"] == 0
    assert shard.read().to_pylist() == table.to_pylist()
    with pytest.raises(InvalidInputError, match="'s'"):
        list(shard)


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_cannot_be_fed_is_refused_before_anything_starts(parquet: str, project: ProjectFolder, ranks: int) -> None:
    with pytest.raises(InvalidInputError, match=r"data=int was given; give a data\.Loader, a table"):
        describe(3, project, ranks=ranks)
    with pytest.raises(InvalidInputError, match="has no rows"):
        describe({"x": []}, project, ranks=ranks)
    with pytest.raises(InvalidInputError, match="has 100 rows, and 101 ranks cannot share that: each needs a row"):
        describe(parquet, project, ranks=101)
    with pytest.raises(InvalidInputError, match="has 100 rows for 101 ranks"):
        describe(Loader(parquet), project, ranks=101)
    with pytest.raises(InvalidInputError, match=r"fewer than the 120 of one batch for each rank.*last='keep'"):
        describe(Loader(parquet, batch_size=40, last="drop"), project, ranks=3)
    with pytest.raises(NotFoundError, match=r"There is no file .*Did you mean 'rows\.parquet'\?"):
        describe(parquet.replace("rows", "row"), project, ranks=ranks)
    lock = threading.Lock()
    with pytest.raises(InvalidInputError, match=r"its transform cannot be pickled.*inside the function instead"):
        describe(Loader(parquet, transform=lambda batch: (lock, batch)), project, ranks=ranks)
    assert not project.root.exists()


def test_set_epoch_keeps_what_is_left_of_the_epoch_that_a_checkpoint_has_begun(
    parquet: str, project: ProjectFolder
) -> None:
    feed = describe(Loader(parquet, batch_size=30), project)
    first, second = (open_loader(feed, project.root, 0, 1, bring_nothing) for _ in range(2))
    next(iter(first))
    second.load_state_dict(first.state_dict())
    second.set_epoch(0)
    assert [len(batch["id"]) for batch in second] == [30, 30, 10]
    second.set_epoch(0)
    assert [len(batch["id"]) for batch in second] == [30, 30, 30, 10]


def test_a_loader_of_memory_that_has_begun_is_refused(project: ProjectFolder) -> None:
    given = Loader(COLUMNS, batch_size=30)
    next(iter(given))
    with pytest.raises(InvalidInputError, match=r"in the middle of an epoch of rows that workers cannot read"):
        describe(given, project)
    given.set_epoch(2)
    assert open_loader(sent(describe(given, project)), project.root, 0, 1, lambda path: None).epoch == 2


# -- in experiments --------------------------------------------------------------------------------------------------


def _count(x: float, data: Any) -> float:
    return float(x + sum(len(batch["id"]) for batch in data))


def test_an_experiment_records_what_it_was_fed_with(parquet: str) -> None:
    data = Loader(parquet, batch_size=8, shuffle=True, transform=halved)
    result = experiment.launch(_count, {"x": [0]}, data=data)
    assert result.trials[0].value == 100.0
    started = json.loads((result.folder / "journal.jsonl").read_text().splitlines()[0])
    assert started["asked"]["feeding"] == {
        "source": parquet,
        "fingerprint": data.source.fingerprint,
        "rows": 100,
        "options": {"batch_size": 8, "shuffle": True, "transform": "halved"},
        "kind": "file",
    }
    other = experiment.launch(_count, {"x": [0]}, data=Loader(parquet, batch_size=9), quiet=True)
    differs = compare(result, other).settings
    assert differs["data.batch_size"] == (8, 9)
    assert "data.source" not in differs


def test_data_that_has_changed_since_is_refused_on_resume_and_reproduction(parquet: str) -> None:
    data = Loader(parquet, batch_size=8)
    result = experiment.launch(_count, {"x": [1]}, data=data, quiet=True)
    again = experiment.reproduce(result.id, quiet=True)
    assert again.is_same
    pq.write_table(pa.table({"id": [1], "x": [1.0]}), parquet)
    refused = r"The data of this experiment, .*rows\.parquet, is not what it was.*Bring it back as it was, or launch"
    with pytest.raises(InvalidInputError, match=refused):
        experiment.resume(result.id, num_trials=2, quiet=True)
    with pytest.raises(InvalidInputError, match=refused):
        experiment.reproduce(result.id, quiet=True)
    os.unlink(parquet)
    with pytest.raises(InvalidInputError, match=r"is not what it was: There is no file"):
        experiment.resume(result.id, quiet=True)


def test_workers_on_other_machines_fetch_what_they_do_not_see(parquet: str) -> None:
    for given in (Loader(parquet, batch_size=7), COLUMNS):
        result = experiment.launch(_count, {"x": [0]}, data=given, engine=FarEngine(), quiet=True)
        assert result.trials[0].value == 100.0


@pytest.mark.parametrize("given", ["fed:1", "table"])
def test_tables_are_pinned_to_the_version_that_they_have_at_launch(given: str) -> None:
    table = data.write(COLUMNS, "fed")
    result = experiment.launch(_count, {"x": [0]}, data=table if given == "table" else given, quiet=True)
    assert result.trials[0].value == 100.0
    data.write({"id": [1], "x": [1.0]}, "fed")
    assert experiment.reproduce(result.id, quiet=True).is_same
    feeding = experiment.load(result.id)._record.header.asked.feeding
    assert (feeding.version, feeding.fingerprint, feeding.rows) == ("1", table.fingerprint, 100)


def test_a_share_is_set_up_when_it_is_first_needed(parquet: str, project: ProjectFolder) -> None:
    shard = Shard(sent(describe(parquet, project)), project.root, 1, 2, bring_nothing)
    assert (shard.epoch, shard.batch_size, shard.columns) == (0, 1024, ["id", "x"])
    other = shard.for_rank(0, 2)
    assert (other.num_rows, other.read()["id"].to_pylist()) == (50, list(range(50)))
    with pytest.raises(AttributeError, match="'Shard' object has no attribute 'bathces'"):
        shard.bathces  # noqa: B018
    again = pickle.loads(
        pickle.dumps(open_loader(describe(Loader(parquet), project), project.root, 0, 1, bring_nothing))
    )
    assert isinstance(again, FollowedLoader)
    assert sum(len(batch["id"]) for batch in again) == 100


def test_tables_of_the_project_are_fetched_and_not_copied(project: ProjectFolder) -> None:
    table = data.write(COLUMNS, "fetched")
    loader = Loader(table, batch_size=30)
    next(iter(loader))
    feed = sent(describe(loader, project, travels=True))
    assert (feed.folder, feed.version, feed.num_rows) == ("data/fetched", "1", 100)
    brought: list[str] = []
    opened = open_loader(feed, Path(table.url).parent.parent, 0, 1, brought.append)
    assert [len(batch["id"]) for batch in opened] == [30, 30, 10], "it goes on where the loader was"
    assert brought == [f"data/fetched/{name}" for name in feed.names]


def test_a_trial_in_this_process_is_fed_too(parquet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = experiment.launch(_count, {"x": [0]}, data=Loader(parquet, batch_size=7), workers=0, quiet=True)
    assert result.trials[0].value == 100.0


@pytest.mark.parametrize("after", range(1, 8))
def test_loops_of_every_kind_see_every_epoch_once_wherever_they_are_taken_up(
    parquet: str, project: ProjectFolder, after: int
) -> None:
    """Two epochs of four batches; the loop is lost after some of them, just after it has saved."""
    feed = sent(describe(Loader(parquet, batch_size=30, shuffle=True), project))

    def by_position(loader: Any, saved: dict[str, Any]) -> Iterator[int]:
        for epoch in range(loader.epoch, 2):
            for _ in loader:
                yield epoch

    def counting(loader: Any, saved: dict[str, Any]) -> Iterator[int]:
        for epoch in range(saved.get("epoch", 0), 2):
            loader.set_epoch(epoch)
            for _ in loader:
                yield epoch

    for loop in (by_position, counting):
        first = open_loader(feed, project.root, 0, 1, bring_nothing)
        epochs: list[int] = []
        for epoch in loop(first, {}):
            epochs.append(epoch)
            if len(epochs) == after:
                state, stood = json.loads(json.dumps(first.state_dict())), first.epoch
                break
        second = open_loader(feed, project.root, 0, 1, bring_nothing)
        second.load_state_dict(state)
        assert second.epoch == stood == epochs[-1]
        epochs += loop(second, {"epoch": epochs[-1]})
        assert epochs == [0] * 4 + [1] * 4


def test_a_single_pass_that_was_complete_is_not_made_again(parquet: str, project: ProjectFolder) -> None:
    feed = sent(describe(Loader(parquet, batch_size=100), project))
    first, second = (open_loader(feed, project.root, 0, 1, bring_nothing) for _ in range(2))
    for _ in first:
        state = first.state_dict()
    second.load_state_dict(state)
    assert list(second) == []
    assert [len(batch["id"]) for batch in second] == [100], "the next epoch"
    assert first.state_dict() == open_loader(feed, project.root, 0, 1, bring_nothing).state_dict() | {"epoch": 1}
