"""Tables of a project on real storage servers: written there, read in place, by several writers at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cargobike import data, experiment
from cargobike.data.tables.verifying import verify
from cargobike.store.files.storages import open_storage


def test_a_table_is_written_to_the_storage_and_read_there(project_url: str, tmp_path: Path) -> None:
    written = data.write({"x": np.arange(1000), "image": np.zeros((1000, 4, 4), np.uint8)}, "numbers")
    again = data.write(({"x": number} for number in range(3)), "numbers")

    assert (written.url, written.version, again.version) == (f"{project_url}/data/numbers", 1, 2)
    paths = {entry.path for entry in open_storage(written.url).list(deep=True)}
    assert paths == {"1/manifest.json", "2/manifest.json", written.files[0].path, again.files[0].path}
    assert not [*tmp_path.rglob("*.parquet")], "nothing stays on this host"
    assert data.open("numbers:1").read().column("x").to_pylist() == list(range(1000))
    assert [table.version for table in data.list()] == [2]
    assert sum(len(batch["x"]) for batch in data.Loader("numbers:1", batch_size=64, shuffle=True)) == 1000
    assert verify(data.open("numbers:1")).problems == []
    open_storage(written.url).write(again.files[0].path, b"changed")
    assert "has changed since the table numbers:2 was written" in verify(again).problems[0]


def test_writers_at_once_get_numbers_without_gaps(project_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        tables = list(threads.map(lambda number: data.write({"n": [number]}, "raced"), range(8)))

    assert sorted(table.version for table in tables) == list(range(1, 9))
    for table in tables:
        assert data.open(f"raced:{table.version}").read().equals(table.read())


def test_small_files_on_the_storage_are_packed(project_url: str) -> None:
    storage = open_storage(f"{project_url}/raw")
    for number in range(20):
        storage.write(f"{'ab'[number % 2]}/{number}.bin", bytes([number]))

    table = data.pack(f"{project_url}/raw", f"{project_url}/packed")
    assert table.read().column("label").to_pylist() == ["a"] * 10 + ["b"] * 10
    assert storage.read("a/0.bin") == b"\0"


def test_a_frame_given_to_an_experiment_lies_on_the_storage(project_url: str, tmp_path: Path) -> None:
    def total(scale: int, data: Any) -> float:
        return float(scale * data.to_pandas()["x"].sum())

    result = experiment.launch(total, {"scale": [1, 2]}, data=pd.DataFrame({"x": [1.0, 2.0, 3.0]}), quiet=True)

    assert sorted(trial.value or 0.0 for trial in result.trials) == [6.0, 12.0]
    (table,) = data.list()
    assert table.url.startswith(f"{project_url}/data/")
    assert not [*tmp_path.rglob("*.parquet")]
