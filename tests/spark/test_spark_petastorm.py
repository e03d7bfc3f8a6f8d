"""Data sets that Spark writes inside `materialize_dataset`, and DataFrames as batches."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cargobike.compat.petastorm import make_reader
from cargobike.compat.petastorm.codecs import CompressedImageCodec, NdarrayCodec, ScalarCodec
from cargobike.compat.petastorm.etl.dataset_metadata import materialize_dataset
from cargobike.compat.petastorm.spark import SparkDatasetConverter, make_spark_converter
from cargobike.compat.petastorm.spark_utils import dataset_as_rdd
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField, dict_to_spark_row

if TYPE_CHECKING:
    from pyspark import SparkContext


def test_spark_writes_and_everything_reads(spark_application: SparkContext, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DecimalType, IntegerType, StringType

    spark = SparkSession(spark_application)
    schema = Unischema(
        "Hello",
        [
            UnischemaField("id", np.int32, (), ScalarCodec(IntegerType()), False),
            UnischemaField("part", np.str_, (), ScalarCodec(StringType()), False),
            UnischemaField("price", Decimal, (), ScalarCodec(DecimalType(10, 2)), False),
            UnischemaField("image", np.uint8, (4, 6, 3), CompressedImageCodec("png"), False),
            UnischemaField("any", np.float32, (None, 2), NdarrayCodec(), True),
        ],
    )
    rows = [
        dict_to_spark_row(
            schema,
            {
                "id": number,
                "part": f"p{number % 2}",
                "price": Decimal(number) / 4,
                "image": np.full((4, 6, 3), number, np.uint8),
                "any": None if number == 3 else np.full((number, 2), number, np.float32),
            },
        )
        for number in range(10)
    ]
    url = (tmp_path / "hello").as_uri()
    with materialize_dataset(spark, url, schema, row_group_size_mb=1):
        frame = spark.createDataFrame(rows, schema.as_spark_schema()).coalesce(1)
        frame.write.partitionBy("part").parquet(url)
    with make_reader(url) as reader:
        found = {int(row.id): row for row in reader}
    assert sorted(found) == list(range(10))
    assert (found[5].part, found[5].price, found[3].any) == ("p1", Decimal("1.25"), None)
    assert (found[7].image == 7).all()
    assert found[7].any.shape == (7, 2)
    read = dataset_as_rdd(url, spark, [schema.id, schema.image]).collect()
    assert sorted((int(row.id), int(row.image[0, 0, 0])) for row in read) == [(number, number) for number in range(10)]


def test_a_dataframe_becomes_batches(spark_application: SparkContext, tmp_path: Path) -> None:
    import torch
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import SparkSession

    spark = SparkSession(spark_application)
    frame = spark.createDataFrame(
        [(number, number / 2, Vectors.dense([number, 1.0])) for number in range(50)], ["a", "b", "v"]
    )
    with pytest.raises(ValueError, match="parentCacheDirUrl"):
        make_spark_converter(frame)
    spark.conf.set(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF, tmp_path.as_uri())
    try:
        with pytest.raises(ValueError, match=r"compression_codec='snapy'.*'snappy'"):
            make_spark_converter(frame, compression_codec="snapy", dtype="int")
        converter = make_spark_converter(frame)
        assert len(converter) == 50
        assert make_spark_converter(frame).cache_dir_url == converter.cache_dir_url
        with converter.make_torch_dataloader(batch_size=20, num_epochs=1) as loader:
            batches = list(loader)
        assert torch.cat([batch["a"] for batch in batches]).sort().values.tolist() == list(range(50))
        assert batches[0]["b"].dtype == torch.float32
        assert batches[0]["v"].shape == (20, 2)
        with converter.make_torch_dataloader() as loader:
            endless = iter(loader)
            assert sum(len(next(endless)["a"]) for _ in range(10)) == 320
            endless.close()
        converter.delete()
        assert list(tmp_path.iterdir()) == []
    finally:
        spark.conf.unset(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF)
