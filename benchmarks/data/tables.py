"""The tables that are loaded: Higgs's shape and MNIST's, made of random numbers once and kept."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HIGGS_ROWS = 2_000_000
HIGGS_GROUP = 50_000
MNIST_ROWS = 200_000
MNIST_GROUP = 10_000
TAR_ROWS = 20_000
"""Of WebDataset's form only a part is made: it is written and read at some thousand rows a second."""


def make(folder: Path) -> None:
    """Make what is missing in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "higgs.parquet").exists():
        _higgs(folder / "higgs.parquet")
    if not (folder / "mnist.parquet").exists():
        _mnist(folder / "mnist.parquet")
    if not (folder / "mnist.tar").exists():
        _tar(folder / "mnist.parquet", folder / "mnist.tar")


def _higgs(path: Path) -> None:
    """28 features and a label, 32 bits each: full of information, so stored as they are."""
    random = np.random.default_rng(0)
    columns = {f"f{number}": random.standard_normal(HIGGS_ROWS, dtype=np.float32) for number in range(28)}
    columns["label"] = random.integers(0, 2, HIGGS_ROWS).astype(np.float32)
    pq.write_table(pa.table(columns), path, row_group_size=HIGGS_GROUP, use_dictionary=False)


def _mnist(path: Path) -> None:
    """Images of 784 bytes as fixed-size binary, with a label."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (MNIST_ROWS, 784), np.uint8)
    field = pa.field("image", pa.binary(784), metadata={"cargobike.tensor": '{"dtype":"uint8","shape":[28,28]}'})
    column = pa.Array.from_buffers(field.type, MNIST_ROWS, [None, pa.py_buffer(images)])
    labels = pa.array(random.integers(0, 10, MNIST_ROWS))
    table = pa.Table.from_arrays([column, labels], schema=pa.schema([field, ("label", pa.int64())]))
    pq.write_table(table, path, row_group_size=MNIST_GROUP)


def _tar(source: Path, path: Path) -> None:
    table = pq.read_table(source).slice(0, TAR_ROWS)
    with tarfile.open(path, "w") as tar:
        for number, (image, label) in enumerate(zip(table["image"], table["label"], strict=True)):
            for ending, data in (("bin", image.as_py()), ("cls", str(label.as_py()).encode())):
                info = tarfile.TarInfo(f"{number:06}.{ending}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
