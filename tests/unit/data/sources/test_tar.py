from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.opening import open_again, open_source
from cargobike.data.sources.source import Source
from cargobike.data.sources.tar import TarSource, open_webdataset
from cargobike.data.tensors import tensor_field


def array(values: object, dtype: str = "float32", order: str = "C") -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array(values, dtype, order=order))  # type: ignore[call-overload]
    return stream.getvalue()


def write(path: Path, members: list[tuple[str, bytes]], mode: str = "w", kind: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, mode, format=kind) as tar:  # type: ignore[call-overload]
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def sample(number: int) -> list[tuple[str, bytes]]:
    return [
        (f"train/{number:04d}.jpg", bytes([number % 256]) * number),
        (f"train/{number:04d}.cls", str(number % 10).encode()),
        (f"train/{number:04d}.seg.npy", array([[number, 1], [2, 3]])),
        (f"train/{number:04d}.json", json.dumps({"n": number, "tags": ["a"]}).encode()),
        (f"train/{number:04d}.txt", f"é{number}".encode()),
    ]


def samples(count: int) -> list[tuple[str, bytes]]:
    return [member for number in range(count) for member in sample(number)]


def rows_of(source: Source, columns: list[str] | None = None) -> list[dict[str, Any]]:
    tables = [source.read(group, columns) for group in range(len(source.groups))]
    assert [table.num_rows for table in tables] == [group.rows for group in source.groups]
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize(("name", "mode"), [("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz")])
def test_samples_become_rows(tmp_path: Path, name: str, mode: str) -> None:
    source = open_source(write(tmp_path / name, samples(100), mode))
    assert isinstance(source, TarSource)
    assert source.schema.equals(
        pa.schema(
            [
                ("__key__", pa.string()),
                ("cls", pa.int64()),
                ("jpg", pa.binary()),
                ("json", pa.struct([("n", pa.int64()), ("tags", pa.list_(pa.string()))])),
                tensor_field("seg.npy", "float32", (2, 2)),
                ("txt", pa.string()),
            ]
        ),
        check_metadata=True,
    )
    rows = rows_of(source)
    assert len(rows) == source.num_rows == 100
    assert rows[42] == {
        "__key__": "train/0042",
        "cls": 2,
        "jpg": b"*" * 42,
        "json": {"n": 42, "tags": ["a"]},
        "seg.npy": np.array([42, 1, 2, 3], "<f4").tobytes(),
        "txt": "é42",
    }
    assert rows_of(source, ["txt", "__key__"])[7] == {"txt": "é7", "__key__": "train/0007"}


def test_groups_are_stretches_that_open_again_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "a.tar", samples(60))
    write(tmp_path / "b.tar", samples(50))
    source = open_webdataset(tmp_path / "*.tar", group_bytes=50_000)
    assert len(source.groups) > 4
    again = open_again(source.spec())
    assert again.groups == source.groups
    assert rows_of(again) == rows_of(source)
    assert source.num_rows == 110
    last = len(source.groups) - 1
    assert again.read(last).equals(source.read(last))


@given(
    st.lists(
        st.tuples(st.text("ab/é", min_size=1, max_size=120), st.binary(max_size=1500)),
        min_size=1,
        max_size=10,
        unique_by=lambda one: one[0].strip("/"),
    ),
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    st.integers(1, 4000),
)
def test_whatever_python_writes_is_read(
    tmp_path_factory: Any, given_members: list[tuple[str, bytes]], kind: int, group_bytes: int
) -> None:
    members = [(f"{number}{name.strip('/')}x.bin", data) for number, (name, data) in enumerate(given_members)]
    path = write(tmp_path_factory.mktemp("tar") / "a.tar", members, kind=kind)
    source = open_webdataset(path, group_bytes=group_bytes)
    assert [(row["__key__"], row["bin"]) for row in rows_of(source)] == [(name[:-4], data) for name, data in members]


def test_arrays_of_any_order_and_length(tmp_path: Path) -> None:
    members = [
        ("1.a.npy", array([[1, 2], [3, 4]], "int16", "F")),
        ("1.b.npy", array([1, 2, 3], ">f8")),
        ("1.c.npy", array(7, "int32")),
        ("2.a.npy", array([[5, 6], [7, 8]], "int16")),
        ("2.b.npy", array([], ">f8")),
        ("2.c.npy", array(8, "int32")),
    ]
    source = open_webdataset(write(tmp_path / "a.tar", members))
    rows = rows_of(source)
    assert np.frombuffer(rows[0]["a.npy"], "<i2").tolist() == [1, 2, 3, 4]
    assert [row["b.npy"] for row in rows] == [[1.0, 2.0, 3.0], []]
    assert [row["c.npy"] for row in rows] == [7, 8]


def test_parts_are_read_as_the_user_says(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", samples(3))
    rows = rows_of(open_webdataset(path, decode={"json": "text", "seg.npy": "bytes", "cls": "text"}))
    assert (rows[1]["json"], rows[1]["cls"]) == ('{"n": 1, "tags": ["a"]}', "1")
    assert rows[1]["seg.npy"] == array([[1, 1], [2, 3]])
    with pytest.raises(InvalidInputError, match=r"decode\['cls'\]='pickle' was given; allowed are 'bytes', 'text'"):
        open_webdataset(path, decode={"cls": "pickle"})


def test_a_part_that_is_missing_is_null_and_notes_are_left_out(tmp_path: Path) -> None:
    members = [("__notes__.txt", b"x"), ("README", b"x"), (".hidden.txt", b"x"), *sample(0), *sample(1)[:2]]
    rows = rows_of(open_webdataset(write(tmp_path / "a.tar", members)))
    assert [row["txt"] for row in rows] == ["é0", None]
    assert [row["cls"] for row in rows] == [0, 1]


HUGE = (
    b"\x93NUMPY\x01\x00v\x00"
    + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}".ljust(117)
    + b"\n"
)


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("0099.cls", b"ninety", "its part 'cls' holds b'ninety', which is no whole number"),
        ("0099.txt", b"\xff", "its part 'txt' is not text in UTF-8"),
        ("0099.json", b"{", "its part 'json' is no JSON"),
        ("0099.json", b'{"n": 1, "new": 2}', "its part 'json' does not fit struct"),
        ("0099.json", b"[" * 100_000, "its part 'json' "),
        ("0099.seg.npy", array([1, 2]), r"its part 'seg.npy' is float32 \(2,\), and float32 \(2, 2\) elsewhere"),
        ("0099.seg.npy", b"no array", "its part 'seg.npy' is no array of NumPy"),
        ("0099.seg.npy", HUGE, "is said to have the shape"),
        ("0099.png", b"", "it has a part 'png', which the samples that were looked at first do not have"),
    ],
)
def test_samples_that_cannot_be_decoded_are_named(tmp_path: Path, name: str, data: bytes, match: str) -> None:
    path = write(tmp_path / "a.tar", [*samples(80), ("train/" + name, data), *sample(100)])
    with pytest.raises(InvalidInputError, match=rf"a\.tar, sample 'train/0099': .*{match}(.|\n)*on_error"):
        rows_of(open_webdataset(path, group_bytes=50_000))
    source = open_webdataset(path, on_error="skip", group_bytes=50_000)
    assert [row["json"]["n"] for row in rows_of(source)] == [*range(80), 100]
    assert source.skips.count == 1
    assert rows_of(open_again(source.spec())) == rows_of(source)


def test_arrays_of_objects_are_never_unpickled(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], object), allow_pickle=True)
    path = write(tmp_path / "a.tar", [("1.npy", stream.getvalue())])
    with pytest.raises(
        InvalidInputError,
        match=r"a\.tar, sample '1': .*only numbers are read, never objects(.|\n)*decode=\{'npy': 'bytes'\}",
    ):
        open_webdataset(path)


@pytest.mark.parametrize(
    ("name", "kind", "match"),
    [
        ("../../etc/passwd.txt", tarfile.REGTYPE, "leads out of the tar"),
        ("/etc/passwd.txt", tarfile.REGTYPE, "leads out of the tar"),
        ("a/..\\b.txt", tarfile.REGTYPE, "leads out of the tar"),
        ("link.txt", tarfile.SYMTYPE, "'link.txt' is a symbolic link"),
        ("link.txt", tarfile.LNKTYPE, "'link.txt' is a link"),
        ("device.txt", tarfile.CHRTYPE, "'device.txt' is neither a file nor a folder"),
    ],
)
def test_hostile_members_are_refused(tmp_path: Path, name: str, kind: bytes, match: str) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for good, data in samples(3):
            info = tarfile.TarInfo(good)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(InvalidInputError, match=rf"a\.tar, byte \d+: .*{match}"):
        open_webdataset(path)
    source = open_webdataset(path, on_error="skip")
    assert (source.num_rows, source.skips.count) == (3, 1)


def test_tars_that_are_cut_off_or_mangled_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", samples(20))
    whole = path.read_bytes()
    path.write_bytes(whole[:30_000])
    with pytest.raises(InvalidInputError, match=r"a\.tar, byte \d+: the tar is cut off inside "):
        open_webdataset(path)
    path.write_bytes(whole.rstrip(b"\0").ljust(-(-len(whole.rstrip(b"\0")) // 512) * 512, b"\0"))
    with pytest.raises(InvalidInputError, match=r"the tar is cut off: the mark at its end is missing"):
        open_webdataset(path)
    path.write_bytes(whole[:512] + b"x" * 512 + whole[1024:])
    with pytest.raises(InvalidInputError, match=r"a\.tar, byte 512: this is no header of a tar: its checksum is wrong"):
        open_webdataset(path)


def test_a_sample_with_a_part_twice_is_named(tmp_path: Path) -> None:
    source = open_webdataset(write(tmp_path / "a.tar", [("a.txt", b"1"), ("b.txt", b"1"), ("b.txt", b"2")]))
    with pytest.raises(InvalidInputError, match="the sample 'b' has two parts 'txt'"):
        source.read(0)
