from __future__ import annotations

import base64
import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.opening import open_again, open_source
from cargobike.data.sources.tfrecord import TFRecordSource, open_tfrecord
from cargobike.data.sources.tfrecords import crc32c as checksums
from cargobike.data.sources.tfrecords import examples
from cargobike.data.sources.tfrecords.examples import MalformedError, encode_example, find_features
from cargobike.data.sources.tfrecords.framing import framed
from cargobike.data.sources.tfrecords.writing import write_tfrecord
from cargobike.data.tensors import tensor_field
from support.scripts import run_script

FLOATS = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(lambda values: np.array(values, np.float32))
INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(lambda values: np.array(values, np.int64))
TEXTS = st.lists(st.binary(max_size=140), max_size=3)
FEATURES = st.fixed_dictionaries({}, optional={"f": FLOATS, "i": INTEGERS, "b": TEXTS, "k" * 200: INTEGERS})


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(map(framed, records)))
    return path


def table_of(source: TFRecordSource, columns: list[str] | None = None) -> pa.Table:
    tables = [source.read(group, columns) for group in range(len(source.groups))]
    assert [table.num_rows for table in tables] == [group.rows for group in source.groups]
    return pa.concat_tables(tables)


def row(number: int) -> dict[str, Any]:
    return {
        "id": np.array([number]),
        "x": np.array([number / 2], np.float32),
        "v": np.arange(3, dtype=np.float32) + number,
        "tags": np.arange(number % 3) - 1,
        "name": [f"n{number}".encode()],
        "image": [bytes([number % 256] * 4)],
    }


def test_checksums_are_those_of_the_standard() -> None:
    """From RFC 3720, B.4."""
    inputs = [bytes(32), b"\xff" * 32, bytes(range(32)), b"123456789", b""]
    expected = [0x8A9136AA, 0x62A8AB43, 0x46DD794E, 0xE3069283, 0]
    lengths = np.array([len(one) for one in inputs])
    starts = np.cumsum(lengths) - lengths
    for compute in (checksums.crc32c, checksums.with_numpy):
        assert compute(b"".join(inputs), starts, lengths).tolist() == expected


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.integers(1, 500))
def test_numpy_computes_what_the_library_does(parts: list[bytes], at_once: int) -> None:
    lengths = np.array([len(part) for part in parts])
    starts = np.cumsum(lengths) - lengths
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksums, "_AT_ONCE", at_once)
        found = checksums.with_numpy(b"".join(parts), starts, lengths)
    assert found.tolist() == checksums.crc32c(b"".join(parts), starts, lengths).tolist()
    masked = [checksums.masked_of(part) for part in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksums, "_fast", None)
        assert [checksums.masked_of(part) for part in parts] == masked == checksums.masked(found).tolist()


@given(FEATURES)
def test_an_example_is_read_as_it_was_written(features: dict[str, Any]) -> None:
    data = encode_example(features)
    found = {
        name: np.asarray(examples.VALUES[feature.kind](data, feature)).tolist()
        for name, feature in find_features(data).items()
    }
    assert found == {name: np.asarray(values).tolist() for name, values in features.items()}


@given(st.lists(FEATURES, min_size=1, max_size=12), st.integers(1, 400))
def test_any_examples_become_lists(tmp_path_factory: Any, rows: list[dict[str, Any]], group_bytes: int) -> None:
    path = write(tmp_path_factory.mktemp("tf") / "a.tfrecord", *map(encode_example, rows))
    names = sorted({name for features in rows for name in features})
    if not names:
        with pytest.raises(InvalidInputError, match="record 0: the records have no features"):
            open_tfrecord(path)
        return
    source = open_tfrecord(path, schema=dict.fromkeys(names, "list"), group_bytes=group_bytes)
    found = table_of(source).to_pylist()
    assert len(found) == len(rows)
    for features, values in zip(rows, found, strict=True):
        assert values == {name: list(features.get(name, [])) for name in names}


@given(st.binary(max_size=40), st.integers(0, 60))
def test_bytes_that_are_no_example_are_refused_or_read(noise: bytes, place: int) -> None:
    data = bytearray(encode_example(row(5)))
    data[place : place + len(noise)] = noise
    try:
        find_features(bytes(data))
    except MalformedError:
        pass


def test_columns_have_the_types_that_the_records_suggest(tmp_path: Path) -> None:
    source = open_tfrecord(write(tmp_path / "a.tfrecord", *(encode_example(row(number)) for number in range(50))))
    assert dict(zip(source.schema.names, map(str, source.schema.types), strict=True)) == {
        "id": "int64",
        "image": "binary",
        "name": "binary",
        "tags": "list<item: int64>",
        "v": "fixed_size_binary[12]",
        "x": "float",
    }
    assert source.schema.field("v").equals(tensor_field("v", "float32", (3,)), check_metadata=True)
    table = table_of(source)
    assert table["id"].to_pylist() == list(range(50))
    assert table["tags"].to_pylist()[:4] == [[], [-1], [-1, 0], []]
    assert np.frombuffer(table["v"][7].as_py(), "<f4").tolist() == [7, 8, 9]


def test_columns_become_what_the_user_says(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", *(encode_example(row(number)) for number in range(20)))
    source = open_tfrecord(
        path, schema={"image": ("uint8", (2, 2)), "name": "string", "id": "uint8", "v": "list", "x": "float64"}
    )
    table = table_of(source, ["image", "name", "id", "v", "x"])
    assert table.schema.field("image").equals(tensor_field("image", "uint8", (2, 2)), check_metadata=True)
    assert table.slice(3, 1).to_pylist() == [
        {"image": bytes([3] * 4), "name": "n3", "id": 3, "v": [3.0, 4.0, 5.0], "x": 1.5}
    ]
    again = open_again(source.spec())
    assert again.read(0).equals(source.read(0))
    assert again.schema.equals(source.schema, check_metadata=True)


def test_an_absent_feature_is_null_or_an_empty_list(tmp_path: Path) -> None:
    less = {name: values for name, values in row(2).items() if name not in ("x", "name", "tags")}
    full = [encode_example(row(number)) for number in range(4)]
    table = table_of(open_tfrecord(write(tmp_path / "a.tfrecord", *full, encode_example(less | {"x": np.zeros(0)}))))
    assert table["x"].to_pylist()[-2:] == [1.5, None]
    assert table["name"].to_pylist()[-2:] == [b"n3", None]
    assert table["tags"].to_pylist()[-1] == []


def test_other_forms_that_protobuf_allows_are_read(tmp_path: Path) -> None:
    """Numbers that are not packed, fields twice, fields that are unknown, lengths with more bytes than needed."""

    def field(number: int, body: bytes) -> bytes:
        return bytes([number << 3 | 2, 0x80 | len(body), 0]) + body

    floats = field(2, b"".join(b"\x0d" + struct.pack("<f", value) for value in (1.5, 2.5)))
    integers = field(3, b"\x08\x05" + field(1, b"\x06\x07") + b"\x08\x08")
    entries = [
        field(1, b"\x10\x01" + field(1, b"f") + field(2, floats)),
        field(1, field(2, integers) + field(1, b"i")),
        field(1, field(1, b"f") + field(2, field(2, field(1, struct.pack("<2f", 3.5, 4.5))))),
    ]
    odd = field(1, b"".join(entries[:2])) + field(15, b"unknown") + field(1, entries[2])
    plain = encode_example({"f": np.array([3.5, 4.5], np.float32), "i": np.array([5, 6, 7, 8])})
    table = table_of(open_tfrecord(write(tmp_path / "a.tfrecord", plain, odd)))
    assert table.slice(0, 1).to_pylist() == table.slice(1, 1).to_pylist()


def test_a_broken_checksum_is_named_with_file_and_record(tmp_path: Path) -> None:
    records = [encode_example(row(number)) for number in range(1000)]
    path = write(tmp_path / "a.tfrecord", *records)
    data = bytearray(path.read_bytes())
    place = sum(len(record) + 16 for record in records[:700]) + 12 + 20
    data[place] ^= 1
    path.write_bytes(data)
    source = open_tfrecord(path, group_bytes=20_000)
    broken = [number for number, group in enumerate(source.groups) if f"from {700}" > group.place[-8:]]
    assert broken
    with pytest.raises(InvalidInputError, match=r"a\.tfrecord, record 700: its checksum is wrong(.|\n)*on_error"):
        table_of(source)
    skipping = open_tfrecord(path, group_bytes=20_000, on_error="skip")
    assert table_of(skipping)["id"].to_pylist() == [number for number in range(1000) if number != 700]
    assert [tuple(skip) for skip in skipping.skips.first] == [(f"{path}, record 700", "its checksum is wrong")]
    assert table_of(open_again(skipping.spec()))["id"].to_pylist() == table_of(skipping)["id"].to_pylist()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda data: data[:-3], r"record 9 at byte \d+: the file ends 3 bytes before this record does"),
        (lambda data: data + b"\x01\x02", "record 10 at byte .*the file ends inside the length of this record"),
        (lambda data: data + bytes(12), "record 10 at byte .*the checksum of its length is wrong"),
        (lambda data: data + _header(1 << 40), "record 10 at byte .* it says that it has 1099511627776 bytes"),
    ],
)
def test_files_that_are_cut_off_or_mangled_are_refused(tmp_path: Path, change: Any, match: str) -> None:
    path = write(tmp_path / "a.tfrecord", *(encode_example(row(number)) for number in range(10)))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InvalidInputError, match=match):
        open_tfrecord(path)
    source = open_tfrecord(path, on_error="skip")
    assert source.num_rows in (9, 10)
    assert source.skips.count == 1
    assert table_of(source).num_rows == source.num_rows


def _header(length: int) -> bytes:
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", checksums.masked_of(packed))


@pytest.mark.parametrize(
    ("odd", "match"),
    [
        ({"id": np.array([1, 2])}, "'id' has 2 values, and 1 elsewhere. If any number may come, say so: schema="),
        ({"x": np.array([1])}, "'x' holds int64, and float elsewhere"),
        ({"new": np.array([1])}, "it has a feature 'new', which the records that were looked at first do not have"),
        ({"v": np.zeros(2, np.float32)}, "'v' has 2 values, and 3 elsewhere"),
        ({"name": [b"a", b"b"]}, "'name' has 2 values, and 1 elsewhere"),
        ({"name": [b"\xff"]}, "'name' is not text in UTF-8"),
        ({"image": [b"123"]}, r"'image' has 3 bytes; a tensor of uint8 \(2, 2\) has 4"),
        ({"small": np.array([300])}, "'small' holds 300, which is no int8"),
    ],
)
def test_records_that_do_not_fit_are_named(tmp_path: Path, odd: dict[str, Any], match: str) -> None:
    usual = {"small": np.array([1])}
    records = [encode_example(row(number) | usual) for number in range(300)]
    records.insert(280, encode_example(row(0) | usual | odd))
    path = write(tmp_path / "a.tfrecord", *records)
    schema = {"image": ("uint8", (2, 2)), "name": "string", "small": "int8"}
    with pytest.raises(InvalidInputError, match=rf"a\.tfrecord, record 280: .*{match}"):
        table_of(open_tfrecord(path, schema=schema))
    skipping = open_tfrecord(path, schema=schema, on_error="skip")
    assert skipping.skips.count == 1
    assert table_of(skipping)["id"].to_pylist() == list(range(300))


def test_what_is_announced_wrongly_is_said_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", encode_example(row(1)))
    with pytest.raises(InvalidInputError) as caught:
        open_tfrecord(path, schema={"x": "flaot32", "name": "int64", "v": ("float32", (0,)), "zzz": "list"})
    text = str(caught.value)
    assert "'x' is said to be 'flaot32'" in text
    assert "Did you mean 'float32'?" in text
    assert "'name' is said to be int64, but the records hold bytes" in text
    assert "'v' is said to have the shape (0,)" in text
    assert "'zzz' is said to be a list, but was not seen" in text


def test_sequences_and_other_messages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"record 0: .*tf\.train\.SequenceExample"):
        open_tfrecord(write(tmp_path / "a.tfrecord", b"\x0a\x00\x12\x00"))
    with pytest.raises(InvalidInputError, match=r"record 0: this is not a tf\.train\.Example"):
        open_tfrecord(write(tmp_path / "b.tfrecord", b"plain text"))


def test_any_table_is_written_and_read(tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([1, None, -(2**63)]),
            "small": pa.array([1, 2, 3], pa.int8()),
            "yes": [True, False, True],
            "x": pa.array([0.5, None, 2.5]),
            "s": ["a", "", None],
            "c": pa.array(["u", "v", "u"]).dictionary_encode(),
            "l": pa.array([[1, 2], [], [3]]),
            "t": pa.array([["a", "b"], ["c"], []]),
        }
    )
    table = table.append_column(
        tensor_field("m", "float32", (2, 2)),
        pa.array([np.full(4, value, "<f4").tobytes() for value in range(3)], pa.binary(16)),
    )
    names = write_tfrecord(table, tmp_path / "out", file_bytes=1)
    assert names == [f"part-{number:05d}.tfrecord" for number in range(3)]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    found = table_of(open_tfrecord(tmp_path / "out", schema={"m": ("float32", (2, 2)), "s": "string"})).to_pylist()
    assert found[0] | {"m": 0} == {
        "c": b"u", "i": 1, "l": [1, 2], "m": 0, "s": "a", "small": 1, "t": [b"a", b"b"], "x": 0.5, "yes": 1,
    }  # fmt: skip
    assert (found[1]["i"], found[1]["x"], found[1]["s"], found[2]["s"], found[2]["i"]) == (
        None,
        None,
        "",
        None,
        -(2**63),
    )
    assert np.frombuffer(found[2]["m"], "<f4").tolist() == [2.0] * 4


def test_columns_that_an_example_cannot_hold_are_refused(tmp_path: Path) -> None:
    table = pa.table({"when": pa.array([0], pa.timestamp("us")), "o": [{"a": 1}], "x": [1]})
    with pytest.raises(InvalidInputError, match=r"'when' is timestamp\[us\](.|\n)*'o' is struct"):
        write_tfrecord(table, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InvalidInputError, match=r"'u' has numbers of 2\*\*63 and more"):
        write_tfrecord({"u": np.array([2**63], np.uint64)}, tmp_path / "out")


BY_TENSORFLOW = """
MAAAAAAAAACV9dBfCi4KDQoBYhIICgYKAAoCw6kKCgoBaRIFGgMKAQAKEQoBdhIMEgoKCAAAAAAAAMA/vh7YjzoAAAAAAAAAEpXq
4go4Cg4KAWISCQoHCgF4CgLDqQoTCgFpEg4aDAoK+///////////AQoRCgF2EgwSCgoIAACgvwAAwD8vNXHSMQAAAAAAAACdg4Pp
Ci8KDQoBYhIICgYKAAoCw6kKCwoBaRIGGgQKAqwCChEKAXYSDBIKCggAAJZCAADAP61HfWg=
"""
"""A file that TensorFlow 2.21 has written."""


def test_a_file_of_tensorflow_is_read_and_written_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(base64.b64decode(BY_TENSORFLOW))
    table = table_of(open_tfrecord(path, schema={"v": "list"}))
    assert table.to_pylist() == [
        {"b": [b"x" * (number % 3), "é".encode()], "i": number, "v": [number / 4, 1.5]} for number in (0, -5, 300)
    ]
    write_tfrecord(table, tmp_path / "out")
    assert (tmp_path / "out" / "part-00000.tfrecord").read_bytes() == path.read_bytes()


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", *(encode_example(row(number)) for number in range(500)))
    packed = tmp_path / "b.tfrecord.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    source = open_tfrecord(packed, group_bytes=10_000)
    assert len(source.groups) > 3
    assert table_of(source).equals(table_of(open_tfrecord(path, group_bytes=10_000)))
    assert source.read(3).equals(open_again(source.spec()).read(3)), "also by a process that has read nothing before"


def test_many_records_that_do_not_fit_are_all_left_out(tmp_path: Path) -> None:
    odd = {"x": np.array([1])}
    records = [encode_example(row(number) | (odd if number % 3 == 2 else {})) for number in range(600)]
    path = write(tmp_path / "a.tfrecord", *records)
    with pytest.raises(InvalidInputError, match=r"'x' is float and int64 in different records; say which"):
        open_tfrecord(path, on_error="skip")
    source = open_tfrecord(path, schema={"x": "float32"}, on_error="skip")
    assert table_of(source)["id"].to_pylist() == [number for number in range(600) if number % 3 != 2]
    assert source.skips.count == 200


TENSORFLOW = """
    import json
    import numpy as np
    import tensorflow as tf

    theirs, ours = "theirs.tfrecord", "ours/part-00000.tfrecord"
    kinds = {"bytes_list": tf.train.BytesList, "float_list": tf.train.FloatList, "int64_list": tf.train.Int64List}
    rng = np.random.default_rng(3)
    with tf.io.TFRecordWriter(theirs) as writer:
        for number in range(300):
            features = {"id": ("int64_list", [number]), "x": ("float_list", [number / 4])}
            if number % 3:
                features["b"] = ("bytes_list", [rng.bytes(int(size)) for size in rng.integers(0, 300, number % 4)])
            features["i"] = ("int64_list", rng.integers(-2**62, 2**62, number % 5).tolist())
            features["v"] = ("float_list", rng.normal(size=6).astype("f4").tolist())
            features = {name: tf.train.Feature(**{kind: kinds[kind](value=v)}) for name, (kind, v) in features.items()}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    read = {"theirs": [], "ours": []}
    for name, path in (("theirs", theirs), ("ours", ours)):
        for record in tf.data.TFRecordDataset(path):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            read[name].append({key: [v.hex() if isinstance(v, bytes) else v for v in
                getattr(feature, feature.WhichOneof("kind")).value] for key, feature in sorted(features.items())})
    print(json.dumps(read))
"""


def test_tensorflow_reads_what_is_written_here_and_the_other_way_round(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "i": rng.integers(-(2**62), 2**62, 500),
            "x": rng.normal(size=500).astype("f4"),
            "s": [f"é{number}" if number % 7 else None for number in range(500)],
            "l": [list(range(-number % 5, 2)) for number in range(500)],
        }
    )
    assert write_tfrecord(table, tmp_path / "ours") == ["part-00000.tfrecord"]
    read = run_script(tmp_path, TENSORFLOW)

    assert len(read["ours"]) == 500
    for number, (features, expected) in enumerate(zip(read["ours"], table.to_pylist(), strict=True)):
        text = [expected["s"].encode().hex()] if expected["s"] is not None else None
        assert features.pop("s", None) == text
        assert features == {"i": [expected["i"]], "x": [expected["x"]], "l": expected["l"]}, number

    source = open_tfrecord(tmp_path / "theirs.tfrecord", schema=dict.fromkeys("bivx", "list"), group_bytes=20_000)
    assert len(source.groups) > 3
    found = table_of(source).to_pylist()
    assert len(found) == len(read["theirs"]) == 300
    for features, expected in zip(found, read["theirs"], strict=True):
        features["b"] = [value.hex() for value in features["b"]]
        assert features == {"b": [], "i": []} | expected | {"id": features["id"]}
        assert expected["id"] == [features["id"]]


def test_a_folder_of_files_is_opened_by_its_look(tmp_path: Path) -> None:
    for part in range(3):
        write(tmp_path / f"{part}.tfrecord", *(encode_example(row(part * 10 + number)) for number in range(10)))
    source = open_source(tmp_path)
    assert isinstance(source, TFRecordSource)
    assert table_of(source)["id"].to_pylist() == list(range(30))
