"""Loaders of torch over readers: types, batches, mixing, shards that never leave a rank waiting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from cargobike.compat.petastorm import TransformSpec, make_batch_reader, make_reader
from cargobike.compat.petastorm.codecs import NdarrayCodec
from cargobike.compat.petastorm.etl.dataset_metadata import materialize_rows
from cargobike.compat.petastorm.predicates import in_lambda
from cargobike.compat.petastorm.pytorch import BatchedDataLoader, DataLoader, InMemBatchedDataLoader
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField
from support.petastorm_sets import GARDEN, write_garden

NUMBERS = ["id", "bed", "grid"]


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_garden(tmp_path_factory.mktemp("torch") / "garden")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("numbers")
    numbers = np.arange(47)
    columns = {
        "id": numbers,
        "wide": numbers.astype(np.uint32),
        "yes": numbers % 2 == 0,
        "pair": np.stack([numbers, -numbers], 1).tolist(),
    }
    pq.write_table(pa.table(columns), folder / "a.parquet", row_group_size=10)
    return folder.as_uri()


@pytest.mark.parametrize("kind", [DataLoader, BatchedDataLoader])
def test_batches_are_dicts_of_tensors(garden: str, plain: str, kind: Any) -> None:
    with kind(make_reader(garden, NUMBERS, shuffle_row_groups=False), batch_size=12) as loader:
        batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == [12, 12, 12, 4]
    assert batches[0]["grid"].shape == (12, 2, 3)
    assert (batches[0]["id"].dtype, batches[0]["bed"].dtype) == (torch.int64, torch.uint8)
    assert torch.cat([batch["id"] for batch in batches]).tolist() == list(range(40))
    with kind(make_batch_reader(plain, shuffle_row_groups=False), batch_size=20) as loader:
        batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == [20, 20, 7]
    assert (batches[0]["wide"].dtype, batches[0]["yes"].dtype) == (torch.int64, torch.uint8)
    assert batches[1]["pair"][0].tolist() == [20, -20]


def test_text_and_decimals_stay_lists(garden: str) -> None:
    spec = TransformSpec(lambda row: {**row, "word": str(row["word"])})
    with DataLoader(make_reader(garden, ["word", "price"], transform_spec=spec, shuffle_row_groups=False), 3) as loader:
        batch = next(iter(loader))
    assert batch["word"] == ["None", "plant 1", "plant 2"]
    assert str(batch["price"][2]) == "0.250"


def test_types_that_torch_lacks_are_told(garden: str, plain: str, tmp_path: Path) -> None:
    with DataLoader(make_reader(garden, ["word"])) as loader, pytest.raises(TypeError, match="Found None in word"):
        list(loader)
    pq.write_table(pa.table({"name": ["a"]}), tmp_path / "a.parquet")
    with DataLoader(make_batch_reader(tmp_path.as_uri())) as loader:
        with pytest.raises(TypeError, match=r"string or object classes\. Found in field name"):
            list(loader)
        with pytest.raises(RuntimeError, match="last time iteration failed"):
            list(loader)


@pytest.mark.parametrize("kind", [DataLoader, BatchedDataLoader])
def test_a_queue_mixes_rows_and_loses_none(plain: str, kind: Any) -> None:
    orders = []
    for seed in (1, 1, 2):
        reader = make_batch_reader(plain, shuffle_row_groups=False, seed=seed)
        with kind(reader, batch_size=4, shuffling_queue_capacity=25) as loader:
            orders.append(torch.cat([batch["id"] for batch in loader]).tolist())
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(47))
    assert max(orders[0][:4]) < 30, "the queue was filled with far more rows than were asked for"
    assert orders[0][:10] != sorted(orders[0][:10])


def test_a_collate_function_gets_rows(plain: str) -> None:
    with DataLoader(make_batch_reader(plain), 5, collate_fn=lambda rows: [int(row["id"]) for row in rows]) as loader:
        assert sorted(number for batch in loader for number in batch) == list(range(47))


def test_iterating_again_begins_anew_and_not_in_the_middle(plain: str) -> None:
    with BatchedDataLoader(make_batch_reader(plain), 10) as loader:
        first = torch.cat([batch["id"] for batch in loader])
        second = torch.cat([batch["id"] for batch in loader])
        assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(47))
        assert first.tolist() != second.tolist()
        one = iter(loader)
        next(one)
        with pytest.raises(RuntimeError, match="finish a full pass"):
            next(iter(loader))


@pytest.mark.parametrize("kind", [DataLoader, BatchedDataLoader])
@pytest.mark.parametrize(
    ("count", "size", "epochs", "capacity"), [(2, 10, 1, 0), (3, 8, 2, 0), (4, 5, 1, 9), (5, 1, 1, 0)]
)
def test_all_shards_give_equally_many_batches(
    plain: str, kind: Any, count: int, size: int, epochs: int, capacity: int
) -> None:
    """Row groups have 10, 10, 10, 10 and 7 rows: shards of whole ones would leave ranks waiting for each other."""
    steps, seen = [], []
    for shard in range(count):
        reader = make_batch_reader(plain, cur_shard=shard, shard_count=count, seed=shard, num_epochs=epochs)
        with kind(reader, batch_size=size, shuffling_queue_capacity=capacity) as loader:
            batches = [batch["id"].tolist() for batch in loader]
        steps.append(len(batches))
        seen += [number for batch in batches for number in batch]
    assert len(set(steps)) == 1
    assert sorted(seen) == sorted(list(range(47)) * epochs)


def test_shards_with_a_predicate_give_what_they_have(plain: str) -> None:
    seen = []
    for shard in range(2):
        reader = make_batch_reader(
            plain, cur_shard=shard, shard_count=2, predicate=in_lambda(["id"], lambda numbers: numbers > 30)
        )
        with DataLoader(reader, 4) as loader:
            seen += [number for batch in loader for number in batch["id"].tolist()]
    assert sorted(seen) == list(range(31, 47))


def test_rows_in_memory_are_given_again(plain: str) -> None:
    reader = make_batch_reader(plain, num_epochs=None)
    loader = InMemBatchedDataLoader(reader, 8, num_epochs=2, rows_capacity=20, shuffle=True)
    batches = [batch["id"].tolist() for batch in loader]
    assert [len(batch) for batch in batches] == [8, 8, 4] * 2
    first, second = ([number for batch in batches[at : at + 3] for number in batch] for at in (0, 3))
    assert sorted(first) == sorted(second)
    assert first != second
    with pytest.raises(RuntimeError, match="cannot be used twice"):
        list(loader)


def test_a_transform_function_makes_the_tensors(plain: str) -> None:
    reader = make_batch_reader(plain, ["id"])
    with BatchedDataLoader(reader, 4, transform_fn=lambda array: torch.as_tensor(array) * 2) as loader:
        assert all(int(number) % 2 == 0 for batch in loader for number in batch["id"])


def test_arrays_of_different_shapes_need_a_collate_function(tmp_path: Path) -> None:
    schema = Unischema("S", [UnischemaField("a", np.float32, (None,), NdarrayCodec())])
    materialize_rows(tmp_path.as_uri(), schema, ({"a": np.ones(length, np.float32)} for length in (1, 2, 3)))
    with DataLoader(make_reader(tmp_path.as_uri()), 3) as loader, pytest.raises(ValueError, match="different shapes"):
        list(loader)
    reader = make_reader(tmp_path.as_uri(), shuffle_row_groups=False)
    with DataLoader(reader, 3, collate_fn=lambda rows: [len(row["a"]) for row in rows]) as loader:
        assert list(loader) == [[1, 2, 3]]
    assert GARDEN.grid.shape == (2, 3)
