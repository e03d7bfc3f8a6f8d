"""The loader on real files: order, resuming, sharing, what a batch is."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.data.loading.loader import Loader
from support.loader_threads import expect_threads_to_end, loader_threads

ROWS = 1000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with numbers, in two files of several groups that have different sizes."""
    folder = tmp_path_factory.mktemp("table")
    ids = np.arange(ROWS)
    whole = pa.table({"id": ids, "half": (ids / 2).astype(np.float32), "odd": ids % 2 == 1})
    pq.write_table(whole.slice(0, 700), folder / "a.parquet", row_group_size=64)
    pq.write_table(whole.slice(700), folder / "b.parquet", row_group_size=100)
    return folder


def ids(batches: Iterator[Any] | Loader | list[Any]) -> list[int]:
    return [int(row) for batch in batches for row in batch["id"]]


def test_rows_come_as_they_lie_and_whole(table: Path) -> None:
    loader = Loader(table, 128)
    batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == [128] * 7 + [104]
    assert len(loader) == len(batches)
    assert ids(batches) == list(range(ROWS))
    np.testing.assert_array_equal(np.concatenate([batch["half"] for batch in batches]), np.arange(ROWS) / 2)
    assert batches[0]["half"].dtype == np.float32
    assert batches[0]["odd"].dtype == bool
    assert (loader.stats.rows, loader.stats.batches, loader.epoch) == (ROWS, 8, 1)
    assert loader.stats.peak_bytes > 0
    assert 0 <= loader.stats.waited_share <= 1


def test_a_shuffled_epoch_has_every_row_once_and_each_epoch_its_own_order(table: Path) -> None:
    loader = Loader(table, 64, shuffle=True, seed=3)
    first, second = ids(loader), ids(loader)
    assert sorted(first) == sorted(second) == list(range(ROWS))
    assert first != second != list(range(ROWS))
    assert ids(Loader(table, 64, shuffle=True, seed=3)) == first
    assert ids(Loader(table, 64, shuffle=True, seed=4)) != first


@pytest.mark.parametrize("mix", [1, 2, 5])
def test_threads_and_batch_size_do_not_change_the_order(table: Path, mix: int) -> None:
    orders = {
        tuple(ids(Loader(table, size, shuffle=True, seed=1, mix=mix, threads=threads)))
        for size, threads in [(7, 1), (64, 4), (5000, 2)]
    }
    assert len(orders) == 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_an_elastic_epoch_loses_no_row_and_repeats_none(table: Path, data: st.DataObject) -> None:
    """Cut at any step, by any number of ranks, go on with any other: what a gang that shrinks and grows does."""
    seed = data.draw(st.integers(0, 3))
    mix = data.draw(st.sampled_from([1, 2, 3, 64]))
    state: dict[str, Any] | None = None
    seen: list[int] = []
    for _ in range(data.draw(st.integers(1, 4))):
        ranks, size = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 90))
        cut = data.draw(st.integers(0, 40))
        states = []
        for rank in range(ranks):
            loader = Loader(table, size, columns=["id"], shuffle=True, seed=seed, mix=mix, rank=rank, world_size=ranks)
            if state is not None:
                loader.load_state_dict(json.loads(json.dumps(state)))
            for step, batch in enumerate(loader):
                if step == cut:
                    break
                seen += batch["id"].tolist()
                mine = loader.state_dict()
                if step == cut - 1:
                    break
            else:
                mine = loader.state_dict()
            if cut == 0:
                mine = state or Loader(table, size, shuffle=True, seed=seed, mix=mix).state_dict()
            states.append(mine)
        assert all(each == states[0] for each in states), "the state is the same for all ranks"
        state = states[0]
        if state["epoch"] == 1:
            break
    else:
        rest = Loader(table, 50, columns=["id"], shuffle=True)
        rest.load_state_dict(state)
        seen += ids(rest)
        assert rest.epoch == 1
    assert sorted(seen) == list(range(ROWS))


def test_a_loader_goes_on_where_it_was_left(table: Path) -> None:
    whole = ids(Loader(table, 100, shuffle=True, seed=5))
    loader = Loader(table, 100, shuffle=True, seed=5)
    first = []
    for batch in loader:
        first += batch["id"].tolist()
        if len(first) == 300:
            break
    assert first + ids(loader) == whole
    assert loader.epoch == 1


def test_the_position_after_the_last_batch_is_the_next_epoch(table: Path) -> None:
    """Even if the iterator is not asked again: some frameworks count batches instead of exhausting it."""
    loader = Loader(table, 250, shuffle=True)
    iterator = iter(loader)
    first = ids([next(iterator) for _ in range(len(loader))])
    assert loader.epoch == 1
    state = loader.state_dict()
    second = ids(loader)
    assert sorted(first) == sorted(second) == list(range(ROWS))
    assert first != second
    again = Loader(table, 100, shuffle=True)
    again.load_state_dict(state)
    assert (again.epoch, ids(again)) == (1, second)


def test_a_batch_that_is_kept_never_changes(table: Path) -> None:
    loader = Loader(table, 32, shuffle=True, mix=2)
    kept, copies = [], []
    for _ in range(2):
        for batch in loader:
            kept.append(batch)
            copies.append(copy.deepcopy(batch))
    for batch, before in zip(kept, copies, strict=True):
        for name, array in batch.items():
            np.testing.assert_array_equal(array, before[name])
            assert array.flags.writeable


def test_threads_end_with_the_iterator(table: Path) -> None:
    assert ids(Loader(table, 10)) == list(range(ROWS))
    expect_threads_to_end()
    for batch in Loader(table, 10):
        assert len(batch["id"]) == 10
        break
    expect_threads_to_end()
    iterator = iter(Loader(table, 10))
    next(iterator)
    assert loader_threads()
    del iterator
    expect_threads_to_end()
    with pytest.raises(ZeroDivisionError):
        list(Loader(table, 10, transform=lambda _: 1 / 0))
    expect_threads_to_end()


def test_an_iterator_that_was_left_early_does_not_disturb_the_next(table: Path) -> None:
    """Threads may still write into the memory of an epoch that was left; the next one must not be given it."""
    for seed in range(20):
        loader = Loader(table, 10, shuffle=True, seed=seed)
        for _ in range(3):
            next(iter(loader))
        rest = ids(loader)
        assert len(rest) == len(set(rest)) == ROWS - 30


def test_a_thread_whose_start_was_interrupted_ends_too(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a pool waits for its new thread to begin: Python forgets the thread, which would wait for ever."""
    begin = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        begin(thread)
        if thread.name.startswith("cargobike-loader"):
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        next(iter(Loader(table, 10)))
    assert caught.tb is not None  # its traceback keeps the pool in memory, as the end of a program does
    expect_threads_to_end()


def test_columns_are_renamed_stacked_and_left_out(table: Path) -> None:
    batch = next(iter(Loader(table, 4, columns={"x": ["half", "id"], "y": "odd"})))
    assert set(batch) == {"x", "y"}
    assert batch["x"].tolist() == [[0, 0], [0.5, 1], [1, 2], [1.5, 3]]
    assert batch["x"].dtype == np.float64, "whole numbers of 64 bits and small floats need large ones"
    assert list(next(iter(Loader(table, 4, columns=["odd"])))) == ["odd"]


def test_arrow_batches(table: Path) -> None:
    loader = Loader(table, 300, to="arrow", shuffle=True, columns={"number": "id", "odd": "odd"})
    batches = list(loader)
    assert [batch.num_rows for batch in batches] == [300, 300, 300, 100]
    assert batches[0].schema.names == ["number", "odd"]
    numbers = [row for batch in batches for row in batch["number"].to_pylist()]
    assert numbers == ids(Loader(table, 64, shuffle=True))


def test_transform_sees_arrays_and_makes_what_is_handed_out(table: Path) -> None:
    loader = Loader(table, 500, transform=lambda batch: (batch["half"] * 2, batch["odd"]))
    assert [int(x.sum()) for x, _ in loader] == [sum(range(500)), sum(range(500, 1000))]


def test_wrong_options_are_named_all_at_once(table: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Loader(table, 0, to="pytorch", last="keeps", seed=-1)  # type: ignore[arg-type]
    words = str(caught.value)
    assert "batch_size=0" in words
    assert "Did you mean 'torch'?" in words
    assert "Did you mean 'keep'?" in words
    assert "seed=-1" in words


def test_an_unknown_column_is_told_the_nearest(table: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'hafl' is unknown\. Did you mean 'half'"):
        Loader(table, columns=["id", "hafl"])


def test_ranks_and_rows_have_to_fit(table: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"has 1,000 rows for 1,001 ranks"):
        Loader(table, rank=0, world_size=1001)
    with pytest.raises(InvalidInputError, match="rank=3 was given; with world_size=3 it is from 0 to 2"):
        Loader(table, rank=3, world_size=3)
    with pytest.raises(InvalidInputError, match="give both or none"):
        Loader(table, rank=3)
    with pytest.raises(InvalidInputError, match="fewer than the 3,000 of one batch for each rank"):
        Loader(table, 1500, rank=0, world_size=2, last="drop")
    with pytest.raises(InvalidInputError, match="has no rows"):
        Loader({"x": np.zeros(0)})


def test_a_state_of_something_else_is_refused(table: Path) -> None:
    state = Loader(table).state_dict()
    with pytest.raises(InvalidInputError, match="another source"):
        Loader({"id": [1, 2, 3]}).load_state_dict(state)
    with pytest.raises(InvalidInputError, match="shuffle=False"):
        Loader(table, shuffle=True).load_state_dict(state)
    with pytest.raises(InvalidInputError, match="not a state of a loader"):
        Loader(table).load_state_dict({"epoch": 3})
    with pytest.raises(InvalidInputError, match="version 99"):
        Loader(table).load_state_dict({**state, "version": 99})


def test_the_ranks_of_a_launcher_are_known(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    loader = Loader(table, 100)
    assert (loader.rank, loader.world_size) == (1, 2)
    assert ids(loader) == list(range(500, 1000))
    assert ids(loader.for_rank(0, 2)) == list(range(500))
