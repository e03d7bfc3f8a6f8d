"""Tables as a stranger may have written them: manifests, claims of writers, metadata of tensors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from cargobike import data
from cargobike.data.sources.table import TableSource
from cargobike.data.tables.addresses import address_of
from cargobike.data.tables.claims import sweep
from cargobike.data.tables.removing import remove_version
from cargobike.data.tensors import KEY, tensor_of
from faults.fuzzing.target import Target


def table_targets(folder: Path) -> Iterator[Target]:
    """Yield the readers of what lies beside the files of a table."""
    folder.mkdir(parents=True)
    table = data.write({"x": [1, 2, 3], "image": np.zeros((3, 2, 2), np.uint8)}, folder / "table")
    manifest = folder / "table" / "1" / "manifest.json"
    part = (folder / "table" / table.files[0].path).read_bytes()
    (folder / "precious.parquet").write_bytes(b"precious")

    def run(content: bytes) -> None:
        """Open, read and remove a table; nothing outside of it may be read or lost."""
        (folder / "table" / table.files[0].path).write_bytes(part)
        manifest.write_bytes(content)
        try:
            opened = data.open(folder / "table")
            source = TableSource(opened)
            for group in range(min(3, len(source.groups))):
                source.read(group)
            remove_version(opened.address, 1)
        finally:
            assert (folder / "precious.parquet").read_bytes() == b"precious"

    def run_claims(content: bytes) -> None:
        (folder / "claimed" / "writing").mkdir(parents=True, exist_ok=True)
        (folder / "claimed" / "writing" / "abc.json").write_bytes(content)
        sweep(address_of(folder / "claimed").storage)
        assert (folder / "precious.parquet").exists()

    examples = (manifest.read_bytes(), _compact(manifest.read_bytes()))
    yield Target("manifest", run, examples, "json", weight=15)
    claim = json.dumps({"process": f"{os.getpid()} host 1 x/1", "folder": "1", "at": 1.0}).encode()
    yield Target("claim", run_claims, (claim,), "json", weight=5)
    described = b'{"dtype":"uint8","shape":[2,2]}'
    yield Target("tensor", _tensors, (described, b'{"dtype":"float16","shape":[]}'), "json", weight=10)


def _compact(content: bytes) -> bytes:
    return json.dumps(json.loads(content) | {"files": []}).encode()


def _tensors(content: bytes) -> None:
    for kind in (pa.binary(4), pa.binary(2), pa.string()):
        tensor = tensor_of(pa.field("image", kind, metadata={KEY: content}))
        assert tensor is not None
        np.zeros(4, np.uint8)[: kind.byte_width].view(tensor.dtype).reshape(tensor.shape)
