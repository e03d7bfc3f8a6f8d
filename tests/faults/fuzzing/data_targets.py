"""Data files of every format, as a stranger may have written them: opened and read, also without what is wrong."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cargobike.core.errors import CargobikeError
from cargobike.data.sources.csv import open_csv
from cargobike.data.sources.json_lines import open_json_lines
from cargobike.data.sources.source import Source
from cargobike.data.sources.tar import open_webdataset
from cargobike.data.sources.tfrecord import open_tfrecord
from cargobike.data.sources.tfrecords.examples import encode_example
from cargobike.data.sources.tfrecords.framing import framed
from faults.fuzzing.target import Target


def data_targets(folder: Path) -> Iterator[Target]:
    """Yield the readers of data files."""
    folder.mkdir(parents=True)
    yield Target("csv", _opening(folder / "a.csv", open_csv), _CSV, "text", weight=15)
    yield Target("json-lines", _opening(folder / "a.jsonl", open_json_lines), _JSON, "text", weight=15)
    yield Target("tfrecord", _opening(folder / "a.tfrecord", open_tfrecord), (_tfrecord(),), "bytes", weight=15)
    yield Target("example", _examples(folder / "b.tfrecord"), (_example(1), _example(300)), "bytes", weight=30)
    yield Target(
        "tar", _opening(folder / "a.tar", open_webdataset), (_tar(tarfile.PAX_FORMAT), _tar()), "bytes", weight=15
    )
    yield Target("tar-parts", _parts(folder / "b.tar"), (_npy(), b'{"a": [1, {"b": null}]}', b"12"), "bytes", weight=15)


_CSV = (b'a,b,c\n1,"x, ""y""\nz",2.5\r\n\n3,,2026-01-02\n', b"\xef\xbb\xbfname;x\n", b"a\n" + b"1\n" * 200)
_JSON = (
    b'{"a": 1, "b": [1, 2], "c": {"d": "x"}}\n{"a": 2.5, "b": [], "c": null}\n',
    b'{"t": "2026-01-02 03:04:05", "n": null, "z": true}\n\n{"t": ""}',
)


def _opening(path: Path, opener: Callable[..., Source]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        path.write_bytes(data)
        _read(opener, path)

    return run


def _read(opener: Callable[..., Source], path: Path) -> None:
    """Read a file whole, and without what is wrong, which must leave nothing that cannot be read."""
    try:
        source = opener(path, on_error="skip", group_bytes=64)
    except CargobikeError:
        pass
    else:
        for group in range(len(source.groups)):
            assert source.read(group).num_rows == source.groups[group].rows
    source = opener(path, group_bytes=64)
    for group in range(len(source.groups)):
        source.read(group)


def _example(number: int) -> bytes:
    features: dict[str, Any] = {"i": np.array([number, -1]), "x": np.array([0.5], np.float32), "b": [b"abc", b""]}
    return encode_example(features | {"one": [b"x"]})


def _tfrecord() -> bytes:
    return b"".join(framed(_example(number)) for number in range(3))


def _examples(path: Path) -> Callable[[bytes], None]:
    """Return what reads a record whose checksum is right, whatever it holds, among others."""

    def run(data: bytes) -> None:
        path.write_bytes(framed(_example(0)) * 2 + framed(data) + framed(_example(2)))
        _read(open_tfrecord, path)

    return run


def _tar(kind: int = tarfile.USTAR_FORMAT) -> bytes:
    stream = io.BytesIO()
    parts = {"cls": b"1", "json": json.dumps({"a": [1]}).encode(), "npy": _npy(), "txt": b"x"}
    with tarfile.open(fileobj=stream, mode="w", format=kind) as tar:
        for number in range(2):
            for ending, data in parts.items():
                info = tarfile.TarInfo(f"{'long/' * 30 * number}{number}.{ending}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()[: 40 * 512]


def _npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(4, dtype=np.int16).reshape(2, 2))
    return stream.getvalue()


def _parts(path: Path) -> Callable[[bytes], None]:
    """Return what reads the same bytes as each kind of part."""

    def run(data: bytes) -> None:
        for ending in ("cls", "json", "npy", "txt", "bin"):
            with tarfile.open(path, "w") as tar:
                info = tarfile.TarInfo(f"a.{ending}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            try:
                _read(open_webdataset, path)
            except CargobikeError:
                continue

    return run
