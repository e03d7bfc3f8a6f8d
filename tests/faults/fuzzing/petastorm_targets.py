"""What a data set of petastorm's holds that a stranger may have written: pickles, images, arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from cargobike.compat.petastorm.codecs import CompressedImageCodec, NdarrayCodec
from cargobike.compat.petastorm.reading.decoding import decode_values
from cargobike.compat.petastorm.stored.images import decode_image
from cargobike.compat.petastorm.stored.indexes import read_indexes
from cargobike.compat.petastorm.stored.known import PickleError
from cargobike.compat.petastorm.stored.schemas import read_schema
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField
from cargobike.core.errors import CargobikeError
from faults.fuzzing.target import Target
from support.petastorm_pickles import INDEXES, SCHEMAS

_GREY = UnischemaField("grey", np.uint16, (None, None), CompressedImageCodec("png"))
_ARRAY = UnischemaField("array", np.float32, (None,), NdarrayCodec())


def petastorm_targets() -> Iterator[Target]:
    """Yield the readers of such data sets."""
    allowed = (CargobikeError, PickleError)
    yield Target("petastorm-schema", read_schema, tuple(SCHEMAS.values()), "bytes", allowed, weight=20)
    yield Target("petastorm-index", read_indexes, tuple(INDEXES.values()), "bytes", allowed, weight=20)
    image = bytes(_GREY.codec.encode(_GREY, np.arange(48, dtype=np.uint16).reshape(6, 8)))
    yield Target("petastorm-image", decode_image, (image,), "bytes", weight=10)
    array = bytes(_ARRAY.codec.encode(_ARRAY, np.arange(5, dtype=np.float32)))
    yield Target("petastorm-array", _decoded, (array,), "bytes", weight=10)


def _decoded(data: bytes) -> object:
    return decode_values(pa.table({"array": [data]}), Unischema("S", [_ARRAY]))
