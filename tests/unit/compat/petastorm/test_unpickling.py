"""Pickles of schemas and indexes are read without unpickling: what petastorm wrote is understood, the rest refused."""

from __future__ import annotations

import builtins
import os
import pickle
import pickletools
import random
import subprocess
from collections import OrderedDict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cargobike.compat.petastorm.codecs import CompressedNdarrayCodec, NdarrayCodec, ScalarCodec
from cargobike.compat.petastorm.stored.indexes import read_indexes, write_indexes
from cargobike.compat.petastorm.stored.known import PickleError
from cargobike.compat.petastorm.stored.schemas import read_schema, write_schema
from cargobike.compat.petastorm.stored.unpickling import read_pickle
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField
from cargobike.core.errors import InvalidInputError, UntrustedError
from support.petastorm_pickles import INDEXES, SCHEMAS

FROM_PYTHON_2 = (
    b"ccopy_reg\n_reconstructor\np1\n(cav.ml.dataset_toolkit.unischema\nUnischema\np2\nc__builtin__\nobject\np3\nNtRp4\n"
    b"(dp5\nS'_fields'\np6\nccollections\nOrderedDict\np7\n((lp8\n(lp9\nS'id'\np10\na"
    b"cpyspark.serializers\n_restore\np11\n(S'UnischemaField'\np12\n"
    b"(S'name'\nS'numpy_dtype'\nS'shape'\nS'codec'\nS'nullable'\ntp13\n"
    b"(g10\ncnumpy\nunicode_\np14\n(I3\nNtg1\n(cpetastorm.codecs\nScalarCodec\np15\ng3\nNtRp16\n(dp17\n"
    b"S'_spark_type'\np18\ng1\n(cpyspark.sql.types\nDecimalType\np19\ng3\nNtRp20\n(dp21\n"
    b"S'precision'\nI7\nsS'scale'\nI2\nsbsbI01\ntp22\ntRp23\naatRp24\nsS'_name'\nS'Old'\nsb."
)
"""Of protocol 0, as Python 2 wrote: text as bytes, a package that was renamed, a function that is gone."""


@pytest.mark.parametrize("protocol", sorted(SCHEMAS))
def test_a_schema_of_petastorms_is_understood(protocol: int) -> None:
    schema = read_schema(SCHEMAS[protocol])
    assert schema._name == "Garden"
    assert list(schema.fields)[:3] == ["id", "plain", "small"]
    assert schema.id == UnischemaField("id", np.int64, (), None, False)
    assert schema.plain.codec is None
    assert schema.small.nullable
    assert (schema.word.numpy_dtype, schema.raw.numpy_dtype, schema.ripe.numpy_dtype) == (np.str_, np.bytes_, np.bool_)
    assert schema.price.numpy_dtype is Decimal
    assert schema.price.codec.stored_type == ("DecimalType", 12, 3)
    assert schema.when.numpy_dtype is np.datetime64
    assert (schema.picture.shape, schema.picture.codec.image_codec) == ((None, None, 3), "png")
    assert (schema.photo.codec.image_codec, schema.photo.codec._quality) == ("jpeg", 70)
    assert type(schema.grid.codec) is NdarrayCodec
    assert type(schema.packed.codec) is CompressedNdarrayCodec


def test_a_schema_that_python_2_wrote_is_understood() -> None:
    schema = read_schema(FROM_PYTHON_2)
    assert schema._name == "Old"
    assert schema.id == UnischemaField("id", np.str_, (3, None), None, True)
    assert schema.id.codec.stored_type == ("DecimalType", 7, 2)


@pytest.mark.parametrize("protocol", sorted(INDEXES))
def test_indexes_of_petastorms_are_understood(protocol: int) -> None:
    indexes: Any = read_indexes(INDEXES[protocol])
    assert indexes["by_word"].get_row_group_indexes("pea") == {0, 3}
    assert indexes["by_id"].get_row_group_indexes(300) == {1}
    assert indexes["by_id"].get_row_group_indexes(301) == set()
    assert indexes["has_small"].get_row_group_indexes() == {2}
    again: Any = read_indexes(write_indexes(indexes))
    assert [again[name]._index_data for name in indexes] == [indexes[name]._index_data for name in indexes]


def test_a_schema_is_written_as_petastorm_reads_it() -> None:
    """That petastorm reads these bytes was seen by hand; here they are compared with what it wrote itself."""
    schema = read_schema(SCHEMAS[4])
    ours = write_schema(schema)
    assert globals_of(ours) == globals_of(SCHEMAS[2])
    again = read_schema(ours)
    assert str(again) == str(schema)
    assert again.fields == schema.fields
    assert again.price.codec.stored_type == ("DecimalType", 12, 3)


def globals_of(data: bytes) -> set[str]:
    """Return what a pickle of protocol 2 names, with NumPy's names of today."""
    found = {argument for opcode, argument, _ in pickletools.genops(data) if opcode.name == "GLOBAL"}
    return {{"numpy bool": "numpy bool_"}.get(str(name), str(name)) for name in found}


class OwnCodec(NdarrayCodec):
    """A codec that no reader knows."""


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (UnischemaField("a", np.float32, (3,), OwnCodec()), "codec of your own, OwnCodec"),
        (UnischemaField("a", np.complex64, (3,), NdarrayCodec()), "cannot be stored"),
        (UnischemaField("a", np.float32, (), ScalarCodec(object())), "Spark's type object"),
    ],
)
def test_what_no_reader_would_understand_is_not_written(field: UnischemaField, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        write_schema(Unischema("S", [field]))


class Hostile:
    """Pickled, it is a call of a function."""

    def __init__(self, function: Any, *args: Any) -> None:
        self._call = (function, args)

    def __reduce__(self) -> Any:
        return self._call


def hostile(folder: Path) -> list[Any]:
    """Return what could be called by a pickle that somebody else wrote."""
    target = str(folder / "touched")
    return [
        Hostile(os.system, f"touch {target}"),
        Hostile(subprocess.call, ["touch", target]),
        Hostile(builtins.eval, f"open({target!r}, 'w')"),
        Hostile(builtins.exec, f"open({target!r}, 'w')"),
        Hostile(builtins.getattr, "x", "__class__"),
        Hostile(builtins.open, target, "w"),
        Hostile(np.load, target),
        Hostile(np.fromfile, target),
        OrderedDict([("a", Hostile(os.mkdir, target))]),
        {"_fields": Hostile(Path, target)},
    ]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_names_anything_else_is_refused(protocol: int, tmp_path: Path) -> None:
    for value in hostile(tmp_path):
        data = pickle.dumps(value, protocol)
        with pytest.raises(UntrustedError, match="no schema and no index of petastorm's"):
            read_pickle(data)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [
        b"cnumpy\nint32\n(I1\ntR.",  # a type that is called
        b"cpetastorm.codecs\nScalarCodec\n(tR.",  # a class that is called instead of named
        b"c__builtin__\nobject\n)R.",
        b"c__builtin__\nset\n)\x81.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
        b"cpetastorm.unischema\nUnischema\n)\x81(I1\ntR.",  # an object that is called
        b"cpetastorm.codecs\nos.system\n.",
        b"cpetastorm.unischema\nsys\n.",
        b"cnumpy\nndarray\n.",
        b"(S'x'\nios\nsystem\n.",
        b"(cos\nsystem\nS'x'\no.",
        b"Pother\n.",
        b"\x82\x01.",
    ],
)
def test_ways_around_names_are_refused(data: bytes) -> None:
    with pytest.raises(UntrustedError, match="no schema"):
        read_pickle(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"(.",
        b"N",
        b"I1\nI2\n.",
        b"(lp1\n(g1\nI2\nu.",
        b"}]Ns.",  # a list as a key
        b"}(I1\nu.",
        b"g7\n.",
        b"t.",
        b"(" * 5000 + b".",
        b"cpetastorm.unischema\nUnischema\n)\x81]b.",
        b"cnumpy\ndtype\n(S'O8'\ntR.",
        b"cnumpy\ndtype\n(S'(9,9)i8'\ntR.",
        b"cpyspark.serializers\n_restore\n(S'UnischemaField'\n(S'a'\nt(tt" + b"R.",
    ],
)
def test_a_broken_pickle_is_an_error_in_words(data: bytes) -> None:
    with pytest.raises(PickleError, match="It "):
        read_pickle(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pickle.dumps({"a": 1}), "holds no schema"),
        (b"\x80\x02cpetastorm.unischema\nUnischema\n)\x81.", "without a name"),
        (
            write_schema(Unischema("S", [UnischemaField("a", np.int8, ())])).replace(b"\x01\0\0\0a", b"\x01\0\0\0 "),
            "no name",
        ),
    ],
)
def test_what_is_no_schema_is_told(data: bytes, words: str) -> None:
    with pytest.raises(PickleError, match=words):
        read_schema(data)


def test_values_that_contain_themselves_end() -> None:
    assert isinstance(read_pickle(b"(lp0\ng0\na."), list)
    nested = b"".join(b"(g%d\ng%d\ntp%d\nN" % (at, at, at + 1) for at in range(60))
    laughs = b"}(I1\nN(I1\ntp0\nN" + nested + b"u."  # hashing the last key would take longer than the sun has
    with pytest.raises(PickleError, match="keys"):
        read_pickle(laughs)


@pytest.mark.parametrize("seed", range(4))
def test_pickles_with_random_mistakes_give_no_other_error(seed: int) -> None:
    rng = random.Random(seed)
    seeds = [*SCHEMAS.values(), *INDEXES.values(), FROM_PYTHON_2]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(300):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            change = rng.random()
            if change < 0.5:
                data[at] = rng.randrange(256)
            elif change < 0.75:
                del data[at : at + rng.randint(1, 20)]
            else:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 4)))
        try:
            read_schema(bytes(data))
            outcomes["read"] += 1
        except (PickleError, UntrustedError):
            outcomes["refused"] += 1
    assert outcomes["refused"] > 100
