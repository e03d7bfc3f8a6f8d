"""Tables of a project on shared storage: written there, read in place, by this host and by others."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike import data, experiment
from cargobike.data.tables.verifying import verify
from cargobike.store.files.storages import open_storage

s3fs = pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def url(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "CARGOBIKE_CACHE": str(tmp_path / "here"),
    }.items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket{time.monotonic_ns()}"
    s3fs.S3FileSystem(use_listings_cache=False).mkdir(bucket)
    address = f"s3://{bucket}/team"
    monkeypatch.setenv("CARGOBIKE_PROJECT", address)
    return address


def test_a_table_is_written_to_the_storage_and_read_there(url: str, tmp_path: Path) -> None:
    written = data.write({"x": np.arange(1000), "image": np.zeros((1000, 4, 4), np.uint8)}, "numbers")
    again = data.write({"x": np.arange(3)}, "numbers")

    assert (written.url, written.version, again.version) == (f"{url}/data/numbers", 1, 2)
    paths = {entry.path for entry in open_storage(written.url).list(deep=True)}
    assert paths == {"1/manifest.json", "2/manifest.json", written.files[0].path, again.files[0].path}
    assert not [*tmp_path.rglob("*.parquet")], "nothing stays on this host"
    assert data.open("numbers:1").read().column("x").to_pylist() == list(range(1000))
    assert [table.version for table in data.list()] == [2]
    assert sum(len(batch["x"]) for batch in data.Loader("numbers:1", batch_size=64, shuffle=True)) == 1000
    assert verify(data.open("numbers:1")).problems == []


def test_packed_files_on_the_storage(url: str) -> None:
    storage = open_storage(f"{url}/raw")
    for number in range(20):
        storage.write(f"{'ab'[number % 2]}/{number}.bin", bytes([number]))

    table = data.pack(f"{url}/raw", f"{url}/packed")
    assert table.read().column("label").to_pylist() == ["a"] * 10 + ["b"] * 10
    assert open_storage(f"{url}/raw").read("a/0.bin") == b"\0"


def test_a_frame_given_to_an_experiment_lies_on_the_storage(url: str, tmp_path: Path) -> None:
    def total(scale: int, data: Any) -> float:
        return float(scale * data.to_pandas()["x"].sum())

    result = experiment.launch(total, {"scale": [1, 2]}, data=pd.DataFrame({"x": [1.0, 2.0, 3.0]}), quiet=True)

    assert sorted(trial.value or 0.0 for trial in result.trials) == [6.0, 12.0]
    (table,) = data.list()
    assert table.url.startswith(f"{url}/data/")
    assert not [*tmp_path.rglob("*.parquet")]
