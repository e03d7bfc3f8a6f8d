"""DataFrames of Spark as batches of torch and TensorFlow."""

from __future__ import annotations

from cargobike.compat.petastorm.spark.spark_dataset_converter import SparkDatasetConverter, make_spark_converter

__all__ = ["SparkDatasetConverter", "make_spark_converter"]
