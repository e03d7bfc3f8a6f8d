"""DataFrames of Spark, kept as Parquet files, as batches of torch and TensorFlow."""

from __future__ import annotations

import atexit
import logging
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.reader import make_batch_reader
from cargobike.core.errors import CargobikeError, EngineError, InvalidInputError, nearest
from cargobike.storage import open_storage

DEFAULT_ROW_GROUP_SIZE_BYTES: Final = 32 << 20
_CODECS: Final = ("uncompressed", "bzip2", "gzip", "lz4", "snappy", "deflate")
_PRECISIONS: Final = ("float32", "float64")

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_kept: list[tuple[Any, tuple[Any, ...], str]] = []
"""DataFrames that were written, how, and where: the same one is written once."""
_delete: Callable[[str], None] | None = None


class SparkDatasetConverter:
    """A DataFrame as Parquet files, from which loaders are made.

    Args:
        cache_dir_url: The folder of the files.
        file_urls: The files.
        dataset_size: How many rows they have.
    """

    PARENT_CACHE_DIR_URL_CONF = "petastorm.spark.converter.parentCacheDirUrl"

    def __init__(self, cache_dir_url: str, file_urls: list[str], dataset_size: int) -> None:
        self.cache_dir_url = cache_dir_url
        self.file_urls = file_urls
        self.dataset_size = dataset_size

    def __len__(self) -> int:
        return self.dataset_size

    @contextmanager
    def make_torch_dataloader(
        self,
        batch_size: int = 32,
        num_epochs: int | None = None,
        workers_count: int | None = None,
        shuffling_queue_capacity: int = 0,
        data_loader_fn: Callable[..., Any] | None = None,
        **petastorm_reader_kwargs: Any,
    ) -> Iterator[Any]:
        """Give a loader of torch for the block; without an end, unless `num_epochs` is given.

        Args:
            batch_size: How many rows a batch has.
            num_epochs: How often all rows are given; `None` for no end.
            workers_count: How many threads read.
            shuffling_queue_capacity: How many rows wait, so that they are mixed.
            data_loader_fn: Makes the loader of a reader; by default `DataLoader`.
            **petastorm_reader_kwargs: For `make_batch_reader`, such as `cur_shard` and `shard_count`.
        """
        notice("petastorm.spark.make_spark_converter")
        from cargobike.compat.petastorm.pytorch import DataLoader  # noqa: PLC0415 - a second to import

        make = data_loader_fn or DataLoader
        reader = self._reader(num_epochs, workers_count, petastorm_reader_kwargs)
        with make(reader, batch_size=batch_size, shuffling_queue_capacity=shuffling_queue_capacity) as loader:
            yield loader

    @contextmanager
    def make_tf_dataset(
        self,
        batch_size: int | None = None,
        prefetch: int | None = None,
        num_epochs: int | None = None,
        workers_count: int | None = None,
        shuffling_queue_capacity: int | None = None,
        **petastorm_reader_kwargs: Any,
    ) -> Iterator[Any]:
        """Give a `tf.data.Dataset` for the block; without an end, unless `num_epochs` is given.

        Args:
            batch_size: How many rows a batch has; 32 by default.
            prefetch: How many batches are made ahead; by default TensorFlow decides.
            num_epochs: How often all rows are given; `None` for no end.
            workers_count: How many threads read.
            shuffling_queue_capacity: How many rows wait, so that they are mixed.
            **petastorm_reader_kwargs: For `make_batch_reader`.
        """
        notice("petastorm.spark.make_spark_converter")
        from cargobike.compat.petastorm.tf_utils import make_petastorm_dataset  # noqa: PLC0415 - seconds to import

        reader = self._reader(num_epochs, workers_count, petastorm_reader_kwargs)
        with reader:
            dataset = make_petastorm_dataset(reader).unbatch()
            if shuffling_queue_capacity:
                dataset = dataset.shuffle(shuffling_queue_capacity)
            yield dataset.batch(batch_size or 32).prefetch(-1 if prefetch is None else prefetch)

    def _reader(self, num_epochs: int | None, workers_count: int | None, given: dict[str, Any]) -> Any:
        twice = [name for name in ("num_epochs", "workers_count") if name in given]
        if twice:
            raise InvalidInputError(f"{', '.join(twice)} can be given only once.")
        return make_batch_reader(self.file_urls, num_epochs=num_epochs, workers_count=workers_count or 4, **given)

    def delete(self) -> None:
        """Delete the files."""
        with _lock:
            _kept[:] = [each for each in _kept if each[2] != self.cache_dir_url]
        _remove(self.cache_dir_url)


def make_spark_converter(
    df: Any,
    parquet_row_group_size_bytes: int = DEFAULT_ROW_GROUP_SIZE_BYTES,
    compression_codec: str | None = None,
    dtype: str | None = "float32",
) -> SparkDatasetConverter:
    """Write a DataFrame as Parquet files below the folder that Spark's setting names, and return loaders of it.

    The setting is `petastorm.spark.converter.parentCacheDirUrl`. The same DataFrame is written once. The files are
    deleted when this process ends.

    Args:
        df: A DataFrame of Spark's, or the address of one that was written before.
        parquet_row_group_size_bytes: How large row groups are.
        compression_codec: How the files are compressed; by default they are not.
        dtype: What numbers with a point become: `"float32"`, `"float64"`, or `None` for what they are.

    Raises:
        InvalidInputError: If something given cannot be used; all mistakes at once.
    """
    notice("petastorm.spark.make_spark_converter")
    codec = (compression_codec or "uncompressed").lower()
    mistakes = []
    if codec not in _CODECS:
        mistakes.append(f"compression_codec={compression_codec!r}: give one of {_CODECS}.{nearest(codec, _CODECS)}")
    if dtype is not None and dtype not in _PRECISIONS:
        mistakes.append(f"dtype {dtype!r} is not supported. Use 'float32' or 'float64', or None.")
    spark = _session()
    parent = spark.conf.get(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF, None)
    if not isinstance(df, str) and not parent:
        mistakes.append(
            f"Set spark.conf.set({SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF!r}, 'file:///…') first: a folder "
            "that the driver and all executors reach."
        )
    if mistakes:
        raise InvalidInputError("The DataFrame cannot be converted.", mistakes)
    url = df if isinstance(df, str) else _written(df, str(parent), parquet_row_group_size_bytes, codec, dtype)
    frame = spark.read.parquet(url)
    return SparkDatasetConverter(url, [_as_url(each) for each in frame.inputFiles()], frame.count())


def register_delete_dir_handler(handler: Callable[[str], None] | None) -> None:
    """Have a function delete folders, by their address; `None` for the usual way."""
    global _delete
    _delete = handler


def _session() -> Any:
    import pyspark  # noqa: PLC0415 - only for who has DataFrames

    if pyspark.TaskContext.get() is not None:
        raise EngineError("make_spark_converter works in the driver of Spark, not in its tasks.")
    return pyspark.sql.SparkSession.builder.getOrCreate()


def _written(df: Any, parent: str, row_group_size: int, codec: str, dtype: str | None) -> str:
    how = (parent, row_group_size, codec, dtype)
    with _lock:
        for other, written_so, url in _kept:
            if written_so == how and other.sameSemantics(df):
                return url
        url = f"{parent.rstrip('/')}/{df.sparkSession.sparkContext.applicationId}-{uuid.uuid4()}"
        frame = _in_precision(_without_vectors(df, dtype), dtype)
        frame.write.option("compression", codec).option("parquet.block.size", row_group_size).parquet(url)
        _kept.append((df, how, url))
    atexit.register(_remove_quietly, url)
    return url


def _without_vectors(df: Any, dtype: str | None) -> Any:
    vectors = [field.name for field in df.schema if type(field.dataType).__name__ == "VectorUDT"]
    if vectors:
        from pyspark.ml.functions import vector_to_array  # noqa: PLC0415 - only for vectors

        for name in vectors:
            df = df.withColumn(name, vector_to_array(df[name], dtype or "float64"))
    return df


def _in_precision(df: Any, dtype: str | None) -> Any:
    if dtype is None:
        return df
    before, after = ("double", "float") if dtype == "float32" else ("float", "double")
    for field in df.schema:
        kind = field.dataType.simpleString()
        if kind in (before, f"array<{before}>"):
            df = df.withColumn(field.name, df[field.name].cast(kind.replace(before, after)))
    return df


def _as_url(name: str) -> str:
    """Return the address of a file as others write it: Spark leaves slashes out."""
    return "file://" + name.removeprefix("file:") if name.startswith("file:/") and "//" not in name else name


def _remove(url: str) -> None:
    if _delete is not None:
        _delete(url)
    elif "://" not in url or url.startswith("file:"):
        shutil.rmtree(unquote(urlsplit(url).path), ignore_errors=True)
    else:
        storage = open_storage(url)
        storage.delete(*[entry.path for entry in storage.list(deep=True)])


def _remove_quietly(url: str) -> None:
    try:
        _remove(url)
    except CargobikeError as error:
        _log.warning("%s could not be deleted: %s", url, error)
