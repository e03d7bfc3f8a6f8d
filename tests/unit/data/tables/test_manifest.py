"""Manifests of strangers: what is refused, and in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cargobike import data
from cargobike.core.errors import StoreError
from cargobike.data.tensors import KEY, tensor_of


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    data.write({"x": [1, 2, 3]}, tmp_path / "table")
    return tmp_path / "table" / "1" / "manifest.json"


def _path(told: dict[str, Any], path: str) -> None:
    told["files"][0]["path"] = path


@pytest.mark.parametrize(
    "path",
    [
        "../secret.parquet",
        "/etc/passwd",
        "1/../../part-a.parquet",
        "1/part-a/../../x.parquet",
        "1/part-a.parquet\n",
        "part-a.parquet",
        "s3://bucket/part-a.parquet",
        "1/part-a.parquet\0",
        "1\\part-a.parquet",
        "",
    ],
)
def test_paths_that_lead_out_are_refused(manifest: Path, path: str) -> None:
    told = json.loads(manifest.read_text())
    _path(told, path)
    manifest.write_text(json.dumps(told))

    with pytest.raises(StoreError, match="is not one of this table"):
        data.open(manifest.parent.parent)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": 4}, "its files have other than 4 rows"),
        ({"rows": -1}, r"Expected `int` >= 0 - at `\$\.rows`"),
        ({"rows": 2**70}, "rows"),
        ({"rows": "3"}, "rows"),
        ({"files": {}}, "files"),
        ({"schema": "!"}, "its schema cannot be read"),
        ({"schema": "AAAA"}, "its schema cannot be read"),
        ({"columns": {"y": "int64"}}, "other columns than it lists"),
        ({"format": 2}, "has format 2; this Cargobike reads format 1. Install a newer one"),
        ({"version": 7}, "says that it is version 7"),
        ({"fingerprint": "<script>"}, "fingerprint"),
    ],
)
def test_what_else_is_refused(manifest: Path, changes: dict[str, Any], words: str) -> None:
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))

    with pytest.raises(StoreError, match=words):
        data.open(manifest.parent.parent)


def test_what_later_versions_add_is_not_minded(manifest: Path) -> None:
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"more": [1]}))

    assert data.open(manifest.parent.parent).num_rows == 3


@pytest.mark.parametrize(
    "described", [b"{", b"[]", b'{"dtype":"object","shape":[4]}', b'{"dtype":"uint8","shape":[-4]}', b'{"dtype":1}']
)
def test_metadata_that_describes_no_tensors_is_refused(described: bytes) -> None:
    with pytest.raises(StoreError, match="The metadata of column 'image' describes"):
        tensor_of(pa.field("image", pa.binary(4), metadata={KEY: described}))
