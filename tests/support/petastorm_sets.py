"""Small data sets with a schema of petastorm's, written without Spark."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from cargobike.compat.petastorm.codecs import CompressedImageCodec, NdarrayCodec, ScalarCodec
from cargobike.compat.petastorm.etl.dataset_metadata import materialize_rows
from cargobike.compat.petastorm.stored.spark_types import SparkType
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField

GARDEN = Unischema(
    "Garden",
    [
        UnischemaField("id", np.int64, (), ScalarCodec(SparkType("LongType")), False),
        UnischemaField("bed", np.uint8, (), ScalarCodec(SparkType("ShortType")), False),
        UnischemaField("word", np.str_, (), ScalarCodec(SparkType("StringType")), True),
        UnischemaField("price", Decimal, (), ScalarCodec(SparkType("DecimalType", 12, 3)), False),
        UnischemaField("grid", np.float32, (2, 3), NdarrayCodec(), False),
        UnischemaField("picture", np.uint8, (4, 5, 3), CompressedImageCodec("png"), True),
    ],
)


def garden_row(number: int) -> dict[str, Any]:
    """Return a row whose values all follow from its number."""
    return {
        "id": np.int64(number),
        "bed": np.uint8(number % 200),
        "word": f"plant {number}" if number % 5 else None,
        "price": Decimal(number) / 8,
        "grid": np.full((2, 3), number, np.float32),
        "picture": np.full((4, 5, 3), number % 256, np.uint8) if number % 3 else None,
    }


def write_garden(folder: Path, rows: int = 40, *, rows_per_group: int = 5, groups_per_file: int = 3) -> str:
    """Write a data set; returns its address."""
    numbers = (garden_row(number) for number in range(rows))
    materialize_rows(folder.as_uri(), GARDEN, numbers, rows_per_group=rows_per_group, groups_per_file=groups_per_file)
    return folder.as_uri()
