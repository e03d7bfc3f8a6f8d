"""From what a pickle holds to a schema, and from a schema to the pickle that petastorm reads."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np

from cargobike.compat.petastorm import codecs
from cargobike.compat.petastorm.stored.known import NUMPY_TYPES, SPARK_TYPES, Global, Made, PickleError
from cargobike.compat.petastorm.stored.pickling import dict_of, items_of, name_of, object_of, text_of, whole_of
from cargobike.compat.petastorm.stored.spark_types import SparkType
from cargobike.compat.petastorm.stored.unpickling import read_pickle
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField
from cargobike.core.errors import InvalidInputError

_FIELD: Final = ("name", "numpy_dtype", "shape", "codec", "nullable")


def read_schema(data: bytes) -> Unischema:
    """Return the schema in a pickle.

    Raises:
        UntrustedError: If the pickle names anything that no schema needs.
        PickleError: If it is broken, or holds something else.
    """
    made = read_pickle(data)
    if not isinstance(made, Made) or made.kind != "Unischema":
        raise PickleError("It holds no schema.")
    name, fields = made.state.get("_name"), made.state.get("_fields")
    if not isinstance(name, str) or not isinstance(fields, dict) or not fields:
        raise PickleError("It holds a schema without a name or without fields.")
    return Unischema(name, [_field(each) for each in fields.values()])


def _field(made: Any) -> UnischemaField:
    if not isinstance(made, Made) or made.kind != "UnischemaField":
        raise PickleError("It holds a schema whose fields are something else.")
    values = {**dict(zip(_FIELD, made.values, strict=False)), **made.state}
    name, shape = values.get("name"), values.get("shape")
    if not isinstance(name, str) or not name.isidentifier():
        raise PickleError("It holds a field whose name is no name.")
    if not isinstance(shape, tuple | list) or not all(each is None or isinstance(each, int) for each in shape):
        raise PickleError(f"Field {name!r} has no shape.")
    codec = values.get("codec")
    return UnischemaField(
        name,
        _numpy_type(values.get("numpy_dtype"), name),
        tuple(shape),
        None if codec is None else _codec(codec, name),
        bool(values.get("nullable", False)),
    )


def _numpy_type(found: Any, name: str) -> Any:
    if found == Global("decimal", "Decimal"):
        return Decimal
    if isinstance(found, Global) and found.module == "numpy" and found.name in NUMPY_TYPES:
        return NUMPY_TYPES[found.name]
    if isinstance(found, Made) and found.kind == "dtype":
        return found.values[0].type
    raise PickleError(f"Field {name!r} has no known type.")


def _codec(made: Any, name: str) -> codecs.DataframeColumnCodec:
    kind = made.kind if isinstance(made, Made) else ""
    if kind == "NdarrayCodec":
        return codecs.NdarrayCodec()
    if kind == "CompressedNdarrayCodec":
        return codecs.CompressedNdarrayCodec()
    if kind == "CompressedImageCodec":
        image, quality = made.state.get("_image_codec"), made.state.get("_quality", 80)
        if isinstance(image, str) and isinstance(quality, int):
            return codecs.CompressedImageCodec(image.removeprefix("."), quality)
    if kind == "ScalarCodec":
        stored = made.state.get("_spark_type")
        if isinstance(stored, Global) and stored.name in SPARK_TYPES:
            return codecs.ScalarCodec(SparkType(stored.name))
        if isinstance(stored, Made) and stored.kind in SPARK_TYPES:
            precision, scale = stored.state.get("precision", 10), stored.state.get("scale", 0)
            if isinstance(precision, int) and isinstance(scale, int):
                return codecs.ScalarCodec(SparkType(stored.kind, precision, scale))
    raise PickleError(f"Field {name!r} has no known codec.")


def write_schema(schema: Unischema) -> bytes:
    """Return the pickle, of protocol 2, in which petastorm finds a schema.

    Raises:
        InvalidInputError: If a codec or a type is not one of petastorm's.
    """
    fields = {name: _pickled_field(field) for name, field in schema.fields.items()}
    ordered = name_of("collections", "OrderedDict") + b")R" + items_of(fields)
    attributes = {name: fields[name] for name in fields if name not in ("_name", "_fields")}
    state = {"_name": text_of(schema._name), "_fields": ordered, **attributes}
    return b"\x80\x02" + object_of("petastorm.unischema", "Unischema", dict_of(state)) + b"."


def _pickled_field(field: UnischemaField) -> bytes:
    shape = b"(" + b"".join(b"N" if length is None else whole_of(length) for length in field.shape) + b"t"
    values = (
        text_of(field.name),
        _pickled_type(field),
        shape,
        b"N" if field.codec is None else _pickled_codec(field),
        b"\x88" if field.nullable else b"\x89",
    )
    return name_of("petastorm.unischema", "UnischemaField") + b"(" + b"".join(values) + b"t\x81"


def _pickled_type(field: UnischemaField) -> bytes:
    if field.numpy_dtype is Decimal:
        return name_of("decimal", "Decimal")
    kind = np.dtype(field.numpy_dtype).type
    name = next((name for name, known in NUMPY_TYPES.items() if known is kind), "")
    if not name:
        raise InvalidInputError(f"Field {field.name!r} has the type {field.numpy_dtype!r}, which cannot be stored.")
    return name_of("numpy", name)


def _pickled_codec(field: UnischemaField) -> bytes:
    codec = field.codec
    name = type(codec).__name__
    if type(codec) not in (
        codecs.ScalarCodec,
        codecs.NdarrayCodec,
        codecs.CompressedNdarrayCodec,
        codecs.CompressedImageCodec,
    ):
        raise InvalidInputError(
            f"Field {field.name!r} has a codec of your own, {name}, which no reader knows; take one of petastorm's."
        )
    state = {}
    if isinstance(codec, codecs.CompressedImageCodec):
        state = {"_image_codec": text_of(codec._image_codec), "_quality": whole_of(codec._quality)}
    if isinstance(codec, codecs.ScalarCodec):
        state = {"_spark_type": _pickled_spark_type(codec.stored_type, field)}
    return object_of("petastorm.codecs", name, dict_of(state) if state else b"")


def _pickled_spark_type(kind: SparkType, field: UnischemaField) -> bytes:
    if kind.name not in SPARK_TYPES:
        raise InvalidInputError(f"Field {field.name!r} has Spark's type {kind.name}, which cannot be stored.")
    if kind.name != "DecimalType":
        return object_of("pyspark.sql.types", kind.name)
    state = {"precision": whole_of(kind.precision), "scale": whole_of(kind.scale), "hasPrecisionInfo": b"\x88"}
    return object_of("pyspark.sql.types", kind.name, dict_of(state))
