"""Every format, on every storage, through the loader: whole and in the shares of ranks."""

from __future__ import annotations

import gzip
import io
import secrets
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cargobike import data, experiment
from cargobike.core.errors import NotFoundError
from cargobike.data.sources.opening import open_again, open_source
from cargobike.store.files.storages import open_storage

ROWS = 300
CSV = "id,x\n" + "".join(f"{number},{number / 2}\n" for number in range(ROWS))
JSON = "".join(f'{{"id": {number}, "x": {number / 2}}}\n' for number in range(ROWS))


def tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        for number in range(ROWS):
            for ending, text in (("cls", str(number)), ("txt", "x")):
                info = tarfile.TarInfo(f"{number:04d}.{ending}")
                info.size = len(text)
                file.addfile(info, io.BytesIO(text.encode()))
    return stream.getvalue()


def ids_of(source: object, column: str = "id", **options: Any) -> list[int]:
    return [
        int(one) for batch in data.Loader(source, batch_size=64, columns=[column], **options) for one in batch[column]
    ]


def check_all(url: str, folder: Path) -> None:
    """Put each format onto a storage, and read it from there."""
    storage = open_storage(url)
    storage.write("a/one.csv", CSV.encode())
    storage.write("b/one.csv.gz", gzip.compress(CSV.encode()))
    storage.write("c/one.jsonl", JSON.encode())
    storage.write("d/one.tar", tar())
    data.write_tfrecord({"id": np.arange(ROWS), "x": np.arange(ROWS) / 2}, f"{url}/e")
    write_deltalake(folder / "delta", pa.table({"id": range(ROWS)}))
    write_deltalake(folder / "delta", pa.table({"id": [-1]}), mode="append")
    for path in (folder / "delta").rglob("*.*"):
        if path.is_file():
            storage.write(f"f/{path.relative_to(folder / 'delta').as_posix()}", path)
    everything = list(range(ROWS))
    for place, column in (("a/*.csv", "id"), ("b/one.csv.gz", "id"), ("c/one.jsonl", "id"), ("d/one.tar", "cls")):
        assert ids_of(f"{url}/{place}", column) == everything, place
    source = open_source(f"{url}/e/*.tfrecord")
    assert ids_of(source) == everything
    assert open_again(source.spec()).read(0).equals(source.read(0))
    assert ids_of(data.delta(f"{url}/f", version=0)) == everything
    assert sorted(ids_of(data.delta(f"{url}/f"))) == [-1, *everything]
    with pytest.raises(NotFoundError, match="There is no Delta table at"):
        data.delta(f"{url}/nowhere")


@pytest.mark.parametrize("name", ["folder", "moto", "seaweed", "hdfs"])
def test_every_format_is_read_from(name: str, tmp_path: Path, storage_url: Callable[[str], str]) -> None:
    check_all(str(tmp_path / "files") if name == "folder" else storage_url(name), tmp_path)


def test_formats_are_read_from_memory() -> None:
    url = f"memory://{secrets.token_hex(4)}/x"
    open_storage(url).write("one.csv", CSV.encode())
    assert ids_of(f"{url}/one.csv") == list(range(ROWS))


def test_ranks_share_a_file_and_a_shuffled_epoch_has_every_row_once(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text(CSV)
    ranks = [ids_of(path, shuffle=True, seed=3, rank=rank, world_size=2) for rank in range(2)]
    assert sorted(ranks[0] + ranks[1]) == list(range(ROWS))
    assert ranks[0] + ranks[1] != list(range(ROWS))


def count(data: Any) -> dict[str, float]:
    ids = [int(one) for batch in data for one in batch["id"]]
    return {"rows": float(len(ids)), "sum": float(sum(ids))}


def test_a_train_function_is_fed_with_a_file_and_a_table_is_made_of_it(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(JSON)
    result = experiment.allreduce(count, data=path, workers=2, quiet=True)
    assert [values["rows"] for values in result.values] == [ROWS / 2, ROWS / 2]
    assert sum(values["sum"] for values in result.values) == sum(range(ROWS))
    table = data.write(str(path), "numbers")
    assert table.num_rows == ROWS
    assert ids_of("numbers") == list(range(ROWS))
