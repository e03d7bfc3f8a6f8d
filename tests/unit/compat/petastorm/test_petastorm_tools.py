"""What is used less often: codecs, schemas, indexes, weighted readers, stand-ins, the command for metadata."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from cargobike.compat.petastorm import make_reader
from cargobike.compat.petastorm.codecs import CompressedImageCodec, CompressedNdarrayCodec, NdarrayCodec, ScalarCodec
from cargobike.compat.petastorm.etl.dataset_metadata import (
    PetastormMetadataGenerationError,
    materialize_dataset,
    materialize_rows,
)
from cargobike.compat.petastorm.etl.petastorm_generate_metadata import main
from cargobike.compat.petastorm.etl.rowgroup_indexers import FieldNotNullIndexer, SingleFieldIndexer
from cargobike.compat.petastorm.etl.rowgroup_indexing import build_rowgroup_index, get_row_group_indexes
from cargobike.compat.petastorm.generator import generate_datapoint
from cargobike.compat.petastorm.names import TRANSLATIONS
from cargobike.compat.petastorm.predicates import in_intersection
from cargobike.compat.petastorm.selectors import IntersectIndexSelector, SingleIndexSelector, UnionIndexSelector
from cargobike.compat.petastorm.stored.images import decode_image
from cargobike.compat.petastorm.stored.spark_types import SparkType
from cargobike.compat.petastorm.test_util.reader_mock import ReaderMock, schema_data_generator_example
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField, insert_explicit_nulls
from cargobike.compat.petastorm.weighted_sampling_reader import WeightedSamplingReader
from cargobike.core.errors import InvalidInputError
from support.petastorm_sets import GARDEN, write_garden


def ids(reader: Any) -> set[int]:
    with reader:
        return {int(row.id) for row in reader}


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_png_keeps_every_pixel(shape: tuple[int, ...], dtype: Any) -> None:
    field = UnischemaField("a", dtype, (None,) * len(shape), CompressedImageCodec("png"))
    pixels = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, shape, dtype)
    encoded = field.codec.encode(field, pixels)
    decoded = field.codec.decode(field, bytes(encoded))
    assert decoded.dtype == dtype
    np.testing.assert_array_equal(decoded, pixels)


def test_16_bit_lines_of_every_kind_are_read() -> None:
    """Pillow writes grey images of 16 bits with filters, as other writers do."""
    pixels = (np.add.outer(np.arange(40) * 300, np.arange(30) * 70) % 65536).astype(np.uint16)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    np.testing.assert_array_equal(decode_image(file.getvalue()), pixels)


def test_jpeg_keeps_about_every_pixel() -> None:
    field = UnischemaField("a", np.uint8, (16, 16, 3), CompressedImageCodec("jpeg", 95))
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[..., 0] = 200
    decoded = field.codec.decode(field, bytes(field.codec.encode(field, pixels)))
    assert np.abs(decoded.astype(int) - pixels).max() < 10, "red must stay red"
    assert str(field.codec) == "CompressedImageCodec('jpeg', 95)"


@pytest.mark.parametrize(
    ("codec", "value", "words"),
    [
        (CompressedImageCodec("png"), np.zeros((4, 4), np.int32), "expected uint8, got int32"),
        (CompressedImageCodec("png"), np.zeros((4, 4, 4), np.uint8), "Unexpected"),
        (CompressedImageCodec("bmp"), np.zeros((4, 4), np.uint8), "not as 'bmp'"),
        (NdarrayCodec(), [1, 2], "list was given"),
        (CompressedNdarrayCodec(), np.zeros((4, 5), np.uint8), r"expected \(4, 4\), got \(4, 5\)"),
    ],
)
def test_values_that_do_not_fit_are_refused(codec: Any, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        codec.encode(UnischemaField("a", np.uint8, (4, 4), codec), value)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n" + bytes(40), b"GIF89a" + bytes(30), b"\xff\xd8\xff"])
def test_broken_images_are_errors_in_words(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="image"):
        decode_image(data)


@pytest.mark.parametrize("codec", [NdarrayCodec(), CompressedNdarrayCodec()])
def test_arrays_come_back(codec: Any) -> None:
    field = UnischemaField("a", np.float64, (None, 2), codec)
    for length in (1, 3, 3):
        value = np.random.default_rng(length).random((length, 2))
        encoded = codec.encode(field, value)
        np.testing.assert_array_equal(codec.decode(field, bytes(encoded)), value)
        np.testing.assert_array_equal(codec.decode(field, encoded), value)
    turned = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(codec.decode(field, bytes(codec.encode(field, turned))), turned)


def test_single_values_are_what_spark_takes() -> None:
    field = UnischemaField("a", np.int32, ())
    assert ScalarCodec(SparkType("IntegerType")).encode(field, np.int32(3)) == 3
    assert type(ScalarCodec(SparkType("DoubleType")).encode(field, np.float32(3))) is float
    with pytest.raises(TypeError, match="single values"):
        ScalarCodec(SparkType("IntegerType")).encode(field, [1])
    with pytest.raises(ValueError, match="holds text"):
        ScalarCodec(SparkType("StringType")).encode(field, 5)


def test_fields_are_equal_whatever_their_codecs() -> None:
    one = UnischemaField("a", np.int32, (), ScalarCodec(SparkType("IntegerType")))
    assert one == UnischemaField("a", np.int32, ())
    assert hash(one) == hash(UnischemaField("a", np.int32, ()))
    assert one != UnischemaField("a", np.int64, ())
    with pytest.raises(AttributeError, match="Did you mean 'price'"):
        _ = GARDEN.prise
    row: dict[str, Any] = {"id": 1, "bed": 1, "price": 1, "grid": 1}
    insert_explicit_nulls(GARDEN, row)
    assert row["word"] is None
    with pytest.raises(ValueError, match="'id' is not found"):
        insert_explicit_nulls(GARDEN, {})
    with pytest.warns(UserWarning, match="'fields' is no attribute"):
        Unischema("S", [UnischemaField("fields", np.int32, ())])


def test_rows_that_do_not_fit_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'idd' is unknown\. Did you mean 'id'"):
        materialize_rows(tmp_path.as_uri(), Unischema("S", [GARDEN.id]), [{"id": 1, "idd": 2}])
    with (
        pytest.raises(PetastormMetadataGenerationError, match="no file"),
        materialize_dataset(None, (tmp_path / "empty").as_uri(), GARDEN),
    ):
        pass
    url = write_garden(tmp_path / "garden", 3)
    with pytest.raises(ValueError, match="already"):
        materialize_rows(url, GARDEN, [])


def test_indexes_choose_row_groups(tmp_path: Path) -> None:
    url = write_garden(tmp_path / "garden")
    build_rowgroup_index(url, None, [SingleFieldIndexer("beds", "bed"), FieldNotNullIndexer("words", "word")])
    assert set(get_row_group_indexes(url)) == {"beds", "words"}
    assert ids(make_reader(url, rowgroup_selector=SingleIndexSelector("beds", [7]))) == {5, 6, 7, 8, 9}
    either = UnionIndexSelector([SingleIndexSelector("beds", [7]), SingleIndexSelector("beds", [39])])
    assert ids(make_reader(url, rowgroup_selector=either)) == {5, 6, 7, 8, 9, 35, 36, 37, 38, 39}
    both = IntersectIndexSelector([SingleIndexSelector("beds", [7, 39]), SingleIndexSelector("words", [None])])
    assert len(ids(make_reader(url, rowgroup_selector=both))) == 10
    with pytest.raises(ValueError, match="Did you mean 'beds'"):
        make_reader(url, rowgroup_selector=SingleIndexSelector("bed", [7]))
    with pytest.raises(ValueError, match="no field 'wor'"):
        build_rowgroup_index(url, None, [SingleFieldIndexer("x", "wor")])


def test_readers_are_sampled_by_weight(tmp_path: Path) -> None:
    urls = [write_garden(tmp_path / name) for name in ("a", "b")]
    readers = [make_reader(url, ["id"], num_epochs=None, seed=number) for number, url in enumerate(urls)]
    with WeightedSamplingReader(readers, [1, 3]) as reader:
        for _ in range(400):
            next(reader)
        first, second = (each.diagnostics["epoch"] for each in readers)
        assert first + 2 < second, "the second is to come three times as often"
        assert not reader.last_row_consumed
    with pytest.raises(ValueError, match="Two or more readers"):
        WeightedSamplingReader(readers[:1], [1, 2])


def test_stand_ins_follow_a_schema() -> None:
    with ReaderMock(GARDEN, schema_data_generator_example) as reader:
        row = next(reader)
    assert (row.grid.shape, row.price) == ((2, 3), Decimal(0))
    made = generate_datapoint(GARDEN)
    assert (made["grid"].shape, made["grid"].dtype, made["bed"].dtype) == ((2, 3), np.float32, np.uint8)


def test_the_command_adds_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = write_garden(tmp_path / "garden", 5)
    (tmp_path / "garden" / "_common_metadata").unlink()
    with pytest.raises(RuntimeError, match="no schema"):
        main(["--dataset_url", url])
    with pytest.raises(ValueError, match="not an instance"):
        main(["--dataset_url", url, "--unischema_class", "support.petastorm_sets.write_garden"])
    main(["--dataset_url", url, "--unischema_class", "support.petastorm_sets.GARDEN"])
    assert ids(make_reader(url)) == set(range(5))


def test_old_metadata_and_checksums_are_understood(tmp_path: Path) -> None:
    url = write_garden(tmp_path, 5)
    (tmp_path / "_common_metadata").rename(tmp_path / "_metadata")
    (tmp_path / "._common_metadata.crc").write_bytes(b"stale")
    assert ids(make_reader(url)) == set(range(5))
    build_rowgroup_index(url, None, [SingleFieldIndexer("ids", "id")])
    assert not (tmp_path / "._common_metadata.crc").exists()
    assert set(pq.read_metadata(tmp_path / "_common_metadata").metadata) >= {
        b"dataset-toolkit.unischema.v1",
        b"dataset-toolkit.rowgroups_index.v1",
        b"dataset-toolkit.num_row_groups_per_file.v1",
    }


def test_lists_are_needed_for_an_intersection() -> None:
    assert in_intersection([1], "a").do_include({"a": np.array([1, 2])})
    with pytest.raises(ValueError, match="looks at lists"):
        in_intersection([1], "a").do_include({"a": 5})


@pytest.mark.parametrize("old", [each.old for each in TRANSLATIONS if not each.old.startswith("petastorm.tf_utils")])
def test_every_name_is_there(old: str) -> None:
    module, _, name = f"cargobike.compat.{old}".rpartition(".")
    assert callable(getattr(importlib.import_module(module), name))


def test_the_package_itself_is_light() -> None:
    heavy = "('torch', 'tensorflow', 'pyspark', 'pyarrow')"
    code = f"import sys, cargobike.compat.petastorm; print([each for each in {heavy} if each in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
