"""The names of Petastorm over our own calls: `make_reader`, `make_batch_reader`, `TransformSpec` and what is below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.compat.petastorm.reader import make_batch_reader, make_reader
    from cargobike.compat.petastorm.transform import TransformSpec

__all__ = ["TransformSpec", "make_batch_reader", "make_reader"]

__getattr__ = lazy_names(
    __name__,
    {
        "make_reader": "cargobike.compat.petastorm.reader",
        "make_batch_reader": "cargobike.compat.petastorm.reader",
        "TransformSpec": "cargobike.compat.petastorm.transform",
    },
    extra="data",
)
