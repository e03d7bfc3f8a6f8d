"""Readers hand out the rows of a data set: fields, orders, shards, predicates, transforms, epochs."""

from __future__ import annotations

import io
import itertools
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike.compat.petastorm import TransformSpec, make_batch_reader, make_reader
from cargobike.compat.petastorm.errors import DecodeFieldError, NoDataAvailableError, UnsortedRowsError
from cargobike.compat.petastorm.etl.dataset_metadata import (
    get_schema_from_dataset_url,
    materialize_dataset,
    materialize_rows,
)
from cargobike.compat.petastorm.ngram import NGram
from cargobike.compat.petastorm.predicates import (
    in_intersection,
    in_lambda,
    in_negate,
    in_pseudorandom_split,
    in_reduce,
    in_set,
)
from cargobike.core.errors import InvalidInputError, NotFoundError, UntrustedError
from support.petastorm_sets import GARDEN, garden_row, write_garden


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_garden(tmp_path_factory.mktemp("petastorm") / "garden")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Plain Parquet of 30 rows in 6 row groups, in two folders of a partition."""
    folder = tmp_path_factory.mktemp("plain")
    for year in (2025, 2026):
        numbers = np.arange(15) + (year - 2025) * 15
        table = pa.table(
            {
                "id": numbers,
                "x": numbers / 2,
                "name": [f"n{number}" for number in numbers],
                "pair": [[int(number), -int(number)] for number in numbers],
                "maybe": pa.array([None if number % 4 == 0 else int(number) for number in numbers]),
            }
        )
        (folder / f"year={year}").mkdir()
        pq.write_table(table, folder / f"year={year}" / "part.parquet", row_group_size=5)
    return folder.as_uri()


def ids(reader: Any) -> list[int]:
    with reader:
        return [int(row.id) for row in reader]


def test_rows_are_what_was_written(garden: str) -> None:
    with make_reader(garden, shuffle_row_groups=False) as reader:
        assert not reader.batched_output
        assert list(reader.schema.fields) == list(GARDEN.fields)
        rows = list(reader)
        assert reader.last_row_consumed
    assert len(rows) == 40
    for number, row in enumerate(rows):
        expected = garden_row(number)
        assert type(row).__name__ == "Garden_view"
        assert [row.id, row.bed, row.word, row.price] == [expected[name] for name in ("id", "bed", "word", "price")]
        assert (type(row.id), type(row.bed), type(row.price)) == (np.int64, np.uint8, Decimal)
        np.testing.assert_array_equal(row.grid, expected["grid"])
        assert row.grid.flags.writeable
        if expected["picture"] is None:
            assert row.picture is None
        else:
            np.testing.assert_array_equal(row.picture, expected["picture"])


def test_the_schema_is_found_at_the_address(garden: str) -> None:
    schema = get_schema_from_dataset_url(garden + "/")
    assert schema.fields == GARDEN.fields
    assert str(schema) == str(GARDEN)


def test_the_order_follows_from_the_seed(garden: str) -> None:
    orders = [ids(make_reader(garden, seed=seed, shuffle_rows=True)) for seed in (7, 7, 8)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert all(sorted(order) == list(range(40)) for order in orders)
    threads = ids(make_reader(garden, seed=7, shuffle_rows=True, workers_count=1, reader_pool_type="dummy"))
    assert threads == orders[0]


def test_row_groups_are_shuffled_and_rows_only_if_asked(garden: str) -> None:
    order = ids(make_reader(garden, seed=3))
    groups = [order[at : at + 5] for at in range(0, 40, 5)]
    assert groups != sorted(groups)
    assert all(group == sorted(group) for group in groups)
    mixed = ids(make_reader(garden, seed=3, shuffle_row_groups=False, shuffle_rows=True))
    assert [number // 5 for number in mixed] == sorted(number // 5 for number in range(40))
    assert mixed != sorted(mixed)


def test_parts_of_row_groups_are_shuffled(garden: str) -> None:
    order = ids(make_reader(garden, seed=3, shuffle_row_drop_partitions=5))
    assert sorted(order) == list(range(40))
    assert any(abs(one - two) != 1 for one, two in itertools.pairwise(order[:5]))


def test_epochs_differ_and_a_reader_begins_anew_once_it_is_empty(garden: str) -> None:
    with make_reader(garden, num_epochs=2, seed=1) as reader:
        order = [int(row.id) for row in reader]
        assert sorted(order[:40]) == sorted(order[40:]) == list(range(40))
        assert order[:40] != order[40:]
        reader.reset()
        next(reader)
        with pytest.raises(NotImplementedError, match="in the middle of iteration"):
            reader.reset()


def test_a_reader_without_end_goes_on(garden: str) -> None:
    with make_reader(garden, num_epochs=None) as reader:
        assert len([next(reader).id for _ in range(130)]) == 130
        assert reader.diagnostics["epoch"] >= 3
    with pytest.raises(RuntimeError, match="has stopped"):
        next(reader)


def test_a_reader_without_end_and_without_rows_says_so(garden: str) -> None:
    with (
        make_reader(garden, num_epochs=None, predicate=in_set([-1], "id")) as reader,
        pytest.raises(NoDataAvailableError, match="would read for ever"),
    ):
        next(reader)


def test_fields_and_regular_expressions_choose_columns(garden: str) -> None:
    with make_reader(garden, schema_fields=[GARDEN.id, "p.*"]) as reader:
        assert next(reader)._fields == ("id", "price", "picture")
    with pytest.raises(RuntimeError, match="No fields matching"):
        make_reader(garden, schema_fields=["pri"])
    with pytest.raises(ValueError, match="does not belong to the schema"):
        make_reader(garden, schema_fields=[GARDEN.id._replace(name="idd")])


def test_shards_are_row_groups_and_together_all(garden: str) -> None:
    shards = [ids(make_reader(garden, cur_shard=shard, shard_count=3, seed=shard)) for shard in range(3)]
    assert sorted(number for shard in shards for number in shard) == list(range(40))
    assert all(len(shard) % 5 == 0 for shard in shards)
    with pytest.raises(NoDataAvailableError, match="greater or equal to the number of requested"):
        make_reader(garden, cur_shard=0, shard_count=9)
    with pytest.raises(ValueError, match="both must be whole numbers"):
        make_reader(garden, cur_shard=0)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (in_set([3, 17], "id"), {3, 17}),
        (in_lambda(["id", "bed"], lambda id, bed: id + bed < 6), {0, 1, 2}),
        (in_lambda(["id"], lambda id, least: id > least, 37), {38, 39}),
        (in_negate(in_lambda(["id"], lambda id: id > 1)), {0, 1}),
        (in_reduce([in_lambda(["id"], lambda id: id > 36), in_set([1, 38], "id")], all), {38}),
    ],
)
def test_predicates_choose_rows(garden: str, plain: str, predicate: Any, expected: set[int]) -> None:
    assert set(ids(make_reader(garden, predicate=predicate))) == expected
    if predicate.get_fields() == {"id"}:
        with make_batch_reader(plain, predicate=predicate) as reader:
            found = [int(number) for batch in reader for number in batch.id]
        assert set(found) == {number for number in expected if number < 30}


def test_a_split_is_whole_and_always_the_same(garden: str) -> None:
    parts = [set(ids(make_reader(garden, predicate=in_pseudorandom_split([0.3, 0.7], part, "id")))) for part in (0, 1)]
    assert parts[0] | parts[1] == set(range(40))
    assert not parts[0] & parts[1]


def test_lists_are_matched_by_their_values(plain: str) -> None:
    with make_batch_reader(plain, predicate=in_intersection([4, -29], "pair")) as reader:
        assert sorted(number for batch in reader for number in batch.id) == [4, 29]


def test_mistakes_of_predicates_are_told(garden: str) -> None:
    with pytest.raises(ValueError, match=r"'idd' is not read\. Did you mean 'id'"):
        make_reader(garden, predicate=in_set([1], "idd"))
    with pytest.raises(ValueError, match="PredicateBase"):
        make_reader(garden, predicate=lambda row: True)


def test_a_transform_changes_rows_and_their_schema(garden: str) -> None:
    def double(row: dict[str, Any]) -> dict[str, Any]:
        return {"id": row["id"], "twice": 2 * row["grid"]}

    spec = TransformSpec(double, [("twice", np.float32, (2, 3), False)], ["bed", "word", "price", "grid", "picture"])
    with make_reader(garden, transform_spec=spec) as reader:
        assert list(reader.schema.fields) == ["id", "twice"]
        for row in reader:
            assert (row.twice == 2 * row.id).all()


def test_an_error_of_a_transform_is_raised_as_it_is(garden: str) -> None:
    def fail(row: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("beans")

    with make_reader(garden, transform_spec=TransformSpec(fail)) as reader, pytest.raises(KeyError, match="beans"):
        next(reader)


def test_batches_are_arrays_of_row_groups(plain: str) -> None:
    with make_batch_reader(plain, shuffle_row_groups=False) as reader:
        assert reader.batched_output
        batches = list(reader)
    assert len(batches) == 6
    assert batches[0]._fields == ("year", "id", "x", "name", "pair", "maybe")
    assert [batch.id.tolist() for batch in batches] == [list(range(at, at + 5)) for at in range(0, 30, 5)]
    first = batches[0]
    assert first.year.tolist() == [2025] * 5
    assert first.name.dtype.kind == "U"
    assert first.pair.tolist() == [[number, -number] for number in range(5)]
    np.testing.assert_array_equal(first.maybe, [np.nan, 1, 2, 3, np.nan])


def test_batches_are_transformed_as_frames(plain: str) -> None:
    def outer(frame: pd.DataFrame) -> pd.DataFrame:
        frame["square"] = [  # type: ignore[assignment]  # arrays are objects to pandas
            np.full((2, 2), value) for value in frame["x"]
        ]
        return frame[["id", "square"]]

    spec = TransformSpec(outer, [("square", np.float64, (2, 2), False)], selected_fields=["square", "id"])
    with make_batch_reader(plain, transform_spec=spec) as reader:
        for batch in reader:
            assert batch._fields == ("square", "id")
            assert batch.square.shape == (5, 2, 2)
            assert (batch.square[:, 0, 0] == batch.id / 2).all()
    wrong = TransformSpec(lambda frame: frame[["id"]])
    with make_batch_reader(plain, transform_spec=wrong) as reader, pytest.raises(ValueError, match="do not match"):
        next(reader)


def test_folders_are_columns_and_decide_which_files_are_read(plain: str) -> None:
    with make_batch_reader(plain, predicate=in_set([2026], "year")) as reader:
        assert sorted(number for batch in reader for number in batch.id) == list(range(15, 30))
    with make_batch_reader(plain, filters=[("year", "=", 2025), ("id", ">", 11)]) as reader:
        assert sorted(number for batch in reader for number in batch.id) == [12, 13, 14]
    with make_batch_reader(plain, filters=[("year", "=", 2025)], cur_shard=0, shard_count=3) as reader:
        assert sorted(number for batch in reader for number in batch.id) == list(range(5))


def test_lists_of_different_lengths_are_an_error_that_names_the_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [[1], [1, 2]]}), tmp_path / "a.parquet")
    with make_batch_reader(tmp_path.as_uri()) as reader, pytest.raises(RuntimeError, match=r"column 'a'.*1, 2"):
        next(reader)


def test_windows_are_formed_of_rows_in_time(garden: str) -> None:
    ngram = NGram({-1: [GARDEN.id], 0: ["id", "b.*"], 1: [GARDEN.grid]}, 1, GARDEN.id)
    with make_reader(garden, schema_fields=ngram, shuffle_row_groups=False) as reader:
        windows = list(reader)
    assert len(windows) == 8 * 3
    first = windows[0]
    assert (first[-1].id, first[0].id, first[0].bed, first[1].grid[0, 0]) == (0, 1, 1, 2)
    apart = NGram({0: [GARDEN.id], 1: [GARDEN.id]}, 1, GARDEN.id, timestamp_overlap=False)
    with make_reader(garden, schema_fields=apart, shuffle_row_groups=False) as reader:
        assert [(int(window[0].id), int(window[1].id)) for window in reader][:3] == [(0, 1), (2, 3), (5, 6)]
    none = NGram({0: [GARDEN.id], 1: [GARDEN.id]}, 0.5, "id")
    with make_reader(garden, schema_fields=none) as reader:
        assert list(reader) == []
    backwards = NGram({0: [GARDEN.id], 1: [GARDEN.id]}, 5, GARDEN.id)
    spec = TransformSpec(lambda row: {**row, "id": -row["id"]})
    with (
        make_reader(garden, schema_fields=backwards, transform_spec=spec) as reader,
        pytest.raises(UnsortedRowsError, match="sorted by time"),
    ):
        next(reader)


def test_what_has_no_schema_is_told_what_to_do(plain: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="make_batch_reader"):
        make_reader(plain)
    with pytest.raises(NotFoundError, match="no file"):
        make_reader((tmp_path / "nothing").as_uri())


def test_all_mistakes_are_told_at_once(garden: str) -> None:
    with pytest.raises(InvalidInputError, match=r"reader_pool_type.*'thread'") as raised:
        make_reader(garden, reader_pool_type="treads", num_epochs=0, cache_type="disk")
    assert len(raised.value.args) >= 1
    assert all(word in str(raised.value) for word in ("num_epochs=0", "Unknown cache_type"))


def test_a_value_that_cannot_be_decoded_names_its_field(tmp_path: Path) -> None:
    with materialize_dataset(None, tmp_path.as_uri(), GARDEN.create_schema_view([GARDEN.grid])):
        pq.write_table(pa.table({"grid": [b"no array"]}), tmp_path / "a.parquet")
    with make_reader(tmp_path.as_uri()) as reader, pytest.raises(DecodeFieldError, match="field 'grid' failed"):
        next(reader)


def test_arrays_of_pickled_objects_are_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], object), allow_pickle=True)
    with materialize_dataset(None, tmp_path.as_uri(), GARDEN.create_schema_view([GARDEN.grid])):
        pq.write_table(pa.table({"grid": [file.getvalue()] * 2}), tmp_path / "a.parquet")
    with make_reader(tmp_path.as_uri()) as reader, pytest.raises(DecodeFieldError, match="allow_pickle"):
        next(reader)


def test_a_data_set_with_a_hostile_schema_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pickled = b"cbuiltins\neval\n(S'1'\ntR."
    schema = pa.schema([("a", pa.int64())], metadata={b"dataset-toolkit.unischema.v1": pickled})
    pq.write_metadata(schema, tmp_path / "_common_metadata")
    with pytest.raises(UntrustedError, match=r"builtins\.eval"):
        make_reader(tmp_path.as_uri())


def test_files_and_file_systems_can_be_given(garden: str) -> None:
    folder = Path(garden.removeprefix("file://"))
    urls = [file.as_uri() for file in sorted(folder.glob("*.parquet"))]
    with make_batch_reader(urls[:2], schema_fields=["id"]) as reader:
        assert sorted(number for batch in reader for number in batch.id) == list(range(30))
    assert sorted(ids(make_reader(garden, filesystem=pa.fs.LocalFileSystem()))) == list(range(40))
    assert sorted(ids(make_reader(str(folder)))) == list(range(40))


def test_data_sets_lie_on_any_storage() -> None:
    url = "memory://petastorm-tests/garden"
    materialize_rows(url, GARDEN, map(garden_row, range(12)), rows_per_group=4, groups_per_file=2)
    assert sorted(ids(make_reader(url))) == list(range(12))
    assert sorted(ids(make_reader(url, storage_options={"skip_instance_cache": True}))) == list(range(12))


def test_row_groups_are_kept_on_this_machine(garden: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def read(limit: int) -> Any:
        return make_reader(
            garden, ["id", "word"], cache_type="local-disk", cache_location=str(cache), cache_size_limit=limit
        )

    assert sorted(ids(read(1 << 20))) == list(range(40))
    kept = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert len(kept) == 8
    broken = sorted(kept)[0]
    broken.write_bytes(b"cut off")
    assert sorted(ids(read(1 << 20))) == list(range(40))
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir() if path != broken} == {
        path: changed for path, changed in kept.items() if path != broken
    }
    for path in kept:
        path.unlink()
    assert sorted(ids(read(3000))) == list(range(40))
    assert 0 < sum(path.stat().st_size for path in cache.iterdir()) <= 3000
    with pytest.raises(ValueError, match="needs cache_location"):
        make_reader(garden, cache_type="local-disk")


def test_threads_end_with_the_reader(garden: str) -> None:
    before = threading.active_count()
    with make_reader(garden, num_epochs=None, workers_count=4) as reader:
        next(reader)
    for thread in threading.enumerate():
        if thread.name.startswith("cargobike-loader"):
            thread.join(10)
    assert threading.active_count() <= before
