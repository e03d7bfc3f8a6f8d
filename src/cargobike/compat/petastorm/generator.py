"""Random rows of a schema, for tests."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np

from cargobike.compat.petastorm.unischema import Unischema

LIST_SIZE: Final = 13


def generate_datapoint(schema: Unischema) -> dict[str, Any]:
    """Return a row of random values; where a length may be any, it is `LIST_SIZE`."""
    random = np.random.default_rng()
    row: dict[str, Any] = {}
    for name, field in schema.fields.items():
        shape = tuple(LIST_SIZE if length is None else length for length in field.shape)
        if field.numpy_dtype is Decimal:
            row[name] = Decimal(int(random.integers(1000)))
        elif np.dtype(field.numpy_dtype).kind in "iu":
            limits = np.iinfo(field.numpy_dtype)
            row[name] = random.integers(limits.min, limits.max, shape, field.numpy_dtype, endpoint=True)
        else:
            row[name] = np.array(random.random(shape)).astype(field.numpy_dtype)
    return row
