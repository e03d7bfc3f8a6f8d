"""DataFrames as TFRecord files, and back. TensorFlow is not needed, and no jar."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.data.sources.tfrecord import records_of
from cargobike.data.sources.tfrecords.examples import (
    BYTES,
    FLOAT,
    INT64,
    Feature,
    bytes_of,
    find_features,
    floats_of,
    integers_of,
)
from cargobike.data.sources.tfrecords.framing import framed
from cargobike.data.sources.tfrecords.writing import check_columns, encode_rows
from cargobike.engines.spark.pythons import python_for_tasks
from cargobike.engines.spark.session import context_of
from cargobike.estimators.spark_ml import with_arrays
from cargobike.store.files.storages import open_storage

__all__ = ["isLoadedDF", "loadTFRecords", "loadedDF", "saveAsTFRecords"]

loadedDF: weakref.WeakKeyDictionary[DataFrame, str] = weakref.WeakKeyDictionary()
"""Where DataFrames that were loaded came from."""

_TYPES: Final = {INT64: LongType(), FLOAT: DoubleType(), BYTES: StringType()}


def isLoadedDF(df: DataFrame) -> bool:
    """Tell whether a DataFrame is one that `loadTFRecords` returned."""
    return df in loadedDF


@formerly("tensorflowonspark.dfutil.saveAsTFRecords")
def saveAsTFRecords(df: DataFrame, output_dir: str) -> None:
    """Write a DataFrame as TFRecord files of `tf.train.Example`, one for each partition.

    Whole numbers and truth values become int64, floating-point numbers 32 bits, text and bytes bytes.

    Raises:
        InvalidInputError: If a column cannot be kept in an Example, or the folder holds files already.
    """
    frame = with_arrays(df)
    schema = to_arrow_schema(frame.schema)
    check_columns(schema)
    address = _address(df.sparkSession, output_dir)
    if next(iter(open_storage(address).list()), None) is not None:
        raise InvalidInputError(f"{output_dir} exists already, and is not empty; give another folder.")
    with python_for_tasks(df.sparkSession.sparkContext):
        written = frame.mapInArrow(_Writing(address, schema), "name string")
    written.collect()
    open_storage(address).write("_SUCCESS", b"")


class _Writing:
    """Writes the rows of one partition, in a task."""

    def __init__(self, address: str, schema: pa.Schema) -> None:
        self._address, self._schema = address, schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        name = f"part-r-{task.partitionId() if task else 0:05d}.tfrecord"
        records = [framed(record) for batch in batches for record in encode_rows(batch, self._schema)]
        open_storage(self._address).write(name, b"".join(records))
        yield pa.RecordBatch.from_pydict({"name": [name]})


@formerly("tensorflowonspark.dfutil.loadTFRecords")
def loadTFRecords(sc: Any, input_dir: str, binary_features: Sequence[str] = ()) -> DataFrame:
    """Return TFRecord files of `tf.train.Example` as a DataFrame; columns are sorted, types are those of the first one.

    Args:
        sc: A SparkContext or SparkSession.
        input_dir: The folder.
        binary_features: Features that are bytes; others are text.

    Raises:
        NotFoundError: If there is no such file.
        InvalidInputError: If a file is damaged; names it, and the record.
    """
    session = SparkSession(context_of(sc))
    address = _address(session, input_dir)
    names = [entry.path for entry in open_storage(address).list() if not entry.path.startswith(("_", "."))]
    files = [f"{address}/{name}" for name in sorted(names)]
    first = next((record for file in files for record in records_of(file)), None)
    if first is None:
        raise NotFoundError(f"{input_dir} holds no records.", wanted=input_dir)
    schema = infer_schema(first, binary_features)
    rows = session.sparkContext.parallelize(files, len(files)).mapPartitions(_Reading(schema))
    with python_for_tasks(session.sparkContext):
        frame = session.createDataFrame(rows, schema)
    loadedDF[frame] = input_dir
    return frame


def infer_schema(example: bytes, binary_features: Sequence[str] = ()) -> StructType:
    """Return the types of the columns that a `tf.train.Example` has: one value is a scalar, several are an array."""
    features = find_features(example)
    return StructType(
        [
            StructField(name, _type_of(example, features[name], name in binary_features), True)
            for name in sorted(features)
        ]
    )


def _type_of(example: bytes, feature: Feature, is_binary: bool) -> DataType:
    if is_binary:
        return BinaryType()
    kind = _TYPES.get(feature.kind, StringType())
    return ArrayType(kind) if len(_values(example, feature)) > 1 else kind


def _values(example: bytes, feature: Feature) -> list[Any]:
    if feature.kind == INT64:
        integers: list[Any] = integers_of(example, feature).tolist()
        return integers
    if feature.kind == FLOAT:
        floats: list[Any] = floats_of(example, feature).tolist()
        return floats
    return bytes_of(example, feature) if feature.kind == BYTES else []


class _Reading:
    """Reads the rows of some files, in a task."""

    def __init__(self, schema: StructType) -> None:
        self._fields = [(field.name, field.dataType) for field in schema.fields]

    def __call__(self, files: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        for file in files:
            for example in records_of(file):
                features = find_features(example)
                yield tuple(
                    _as_column(_values(example, features[name]), kind) if name in features else None
                    for name, kind in self._fields
                )


def _as_column(values: list[Any], kind: DataType) -> Any:
    if isinstance(kind, BinaryType):
        return bytearray(values[0]) if values else None
    plain = [value.decode() if isinstance(value, bytes) else value for value in values]
    return plain if isinstance(kind, ArrayType) else next(iter(plain), None)


def _address(session: SparkSession, path: str) -> str:
    """Return the place that Spark means by a path, which depends on its settings."""
    where = session._jvm.org.apache.hadoop.fs.Path(path)
    settings = session._jsc.hadoopConfiguration()
    url = str(where.getFileSystem(settings).makeQualified(where).toString())
    return url.removeprefix("file:") if url.startswith("file:/") and not url.startswith("file://") else url
