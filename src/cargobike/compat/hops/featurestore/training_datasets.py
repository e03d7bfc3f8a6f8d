"""Training datasets of the old feature store: files in the project, where its readers look for them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from cargobike.compat.hops.featurestore.formats import Format, format_of
from cargobike.compat.hops.featurestore.groups import check_store, without_numbers
from cargobike.compat.hops.translating.files import ProjectFiles, project_name
from cargobike.compat.hsfs.frames import give, read_frame
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest
from cargobike.core.registering.lazy import load

_HERE: Final = "hops.featurestore"
_RECORD: Final = "training_dataset.json"


class TrainingDatasetRecord(msgspec.Struct, frozen=True):
    """What is known of a training dataset.

    Attributes:
        name: Its name.
        version: Its version.
        data_format: The format of its files.
        description: What it holds.
        features: Types of its columns, as Arrow writes them.
        lengths: How long the lists of a column are, if all are equally long.
        parts: How many writes it has had.
        rows: How many rows it has.
        at: When it was written.
    """

    name: str
    version: int
    data_format: str
    description: str = ""
    features: dict[str, str] = {}
    lengths: dict[str, int] = {}
    parts: int = 0
    rows: int = 0
    at: float = 0.0


@formerly(f"{_HERE}.create_training_dataset")
def create_training_dataset(
    df: Any,
    training_dataset: str,
    description: str = "",
    featurestore: str | None = None,
    data_format: str = "tfrecords",
    write_mode: str = "overwrite",
    training_dataset_version: int = 1,
    jobs: Any = (),
    descriptive_statistics: bool = True,
    feature_correlation: bool = True,
    feature_histograms: bool = True,
    cluster_analysis: bool = True,
    stat_columns: Any = None,
    num_bins: int = 20,
    corr_method: str = "pearson",
    num_clusters: int = 5,
    petastorm_args: Any = None,
    fixed: bool = True,
    sink: Any = None,
    path: str | None = None,
) -> None:
    """Write a frame as files of the project: `get_training_dataset_path` says where.

    Args:
        df: A Spark, pandas or polars DataFrame, a NumPy array, a list.
        training_dataset: Its name.
        description: What it holds.
        featurestore: The project's own.
        data_format: `tfrecords`, `csv`, `tsv`, `parquet`, `orc`, `avro`, `npy` or `hdf5`.
        write_mode: `"overwrite"` or `"append"`.
        training_dataset_version: Its version.
        jobs: Means nothing here, like everything about statistics.
        descriptive_statistics: Means nothing here.
        feature_correlation: Means nothing here.
        feature_histograms: Means nothing here.
        cluster_analysis: Means nothing here.
        stat_columns: Means nothing here.
        num_bins: Means nothing here.
        corr_method: Means nothing here.
        num_clusters: Means nothing here.
        petastorm_args: Means nothing here.
        fixed: Means nothing here.
        sink: Refused: it lies in the project.
        path: Refused: it lies in the project.
    """
    if sink is not None or path is not None:
        raise InvalidInputError("sink and path: training datasets lie in the project; copy them from there.")
    check_store(featurestore)
    _write(df, training_dataset, training_dataset_version, data_format, write_mode, description)


@formerly(f"{_HERE}.insert_into_training_dataset")
def insert_into_training_dataset(
    df: Any,
    training_dataset: str,
    featurestore: str | None = None,
    training_dataset_version: int = 1,
    descriptive_statistics: bool = True,
    feature_correlation: bool = True,
    feature_histograms: bool = True,
    cluster_analysis: bool = True,
    stat_columns: Any = None,
    num_bins: int = 20,
    corr_method: str = "pearson",
    num_clusters: int = 5,
    write_mode: str = "overwrite",
    **more: Any,
) -> None:
    """Write a frame into a training dataset that is there, in its format."""
    check_store(featurestore)
    record = find_record(training_dataset, training_dataset_version)
    _write(df, training_dataset, training_dataset_version, record.data_format, write_mode, record.description)


@formerly(f"{_HERE}.get_training_dataset")
def get_training_dataset(
    training_dataset: str,
    featurestore: str | None = None,
    training_dataset_version: int = 1,
    dataframe_type: str = "default",
) -> Any:
    """Return the rows of a training dataset: a Spark DataFrame where a session is active, else a pandas DataFrame."""
    check_store(featurestore)
    return give(dataframe_type, lambda: read_rows(training_dataset, training_dataset_version))


@formerly(f"{_HERE}.get_training_dataset_path")
def get_training_dataset_path(
    training_dataset: str, featurestore: str | None = None, training_dataset_version: int = 1
) -> str:
    """Return the folder of a training dataset, whose files are `part-r-00000` and so on; of an array its file."""
    check_store(featurestore)
    record = find_record(training_dataset, training_dataset_version)
    files = ProjectFiles()
    folder = files.full(_rows_folder(record.name, record.version))
    return f"{folder}/part-r-00000.{record.data_format}" if record.data_format in {"npy", "hdf5"} else folder


@formerly(f"{_HERE}.get_training_dataset_tf_record_schema")
def get_training_dataset_tf_record_schema(
    training_dataset: str, featurestore: str | None = None, training_dataset_version: int = 1
) -> dict[str, Any]:
    """Return what `tf.io.parse_single_example` needs to read the files of a training dataset."""
    check_store(featurestore)
    record = find_record(training_dataset, training_dataset_version)
    if record.data_format not in {"tfrecords", "tfrecord"}:
        raise InvalidInputError(f"{record.name} is written as {record.data_format}, which has no schema of TFRecords.")
    return tf_schema(record.features, record.lengths)


@formerly(f"{_HERE}.get_dataframe_tf_record_schema")
def get_dataframe_tf_record_schema(spark_df: Any, fixed: bool = True) -> dict[str, Any]:
    """Return what `tf.io.parse_single_example` needs to read a frame that was written as TFRecords."""
    table = read_frame(spark_df)
    return tf_schema(_types(table), _lengths(table) if fixed else {})


def get_latest_training_dataset_version(training_dataset: str, featurestore: str | None = None) -> int:
    """Return the newest version of a training dataset; 0 if there is none."""
    return max((one.version for one in every() if one.name == training_dataset.lower()), default=0)


def every() -> list[TrainingDatasetRecord]:
    """Return all training datasets, by name and version."""
    files = ProjectFiles()
    found = [entry.path for entry in files.storage.list(_root(), deep=True) if entry.path.endswith(f"/{_RECORD}")]
    read = [files.storage.read(path) for path in sorted(found)]
    records = [msgspec.json.decode(one, type=TrainingDatasetRecord) for one in read if one is not None]
    return sorted(records, key=lambda record: (record.name, record.version))


def find_record(name: str, version: int) -> TrainingDatasetRecord:
    """Return what is known of a training dataset.

    Raises:
        NotFoundError: If there is none.
    """
    known = every()
    for record in known:
        if (record.name, record.version) == (name.lower(), version):
            return record
    names = [f"{one.name}_{one.version}" for one in known]
    raise NotFoundError(
        f"There is no training dataset {name!r} of version {version}; there are {', '.join(names) or 'none yet'}."
        f"{nearest(f'{name}_{version}', names)}"
    )


def read_rows(name: str, version: int) -> pa.Table:
    """Return the rows of a training dataset."""
    record = find_record(name, version)
    files = ProjectFiles()
    folder = files.find(_rows_folder(record.name, record.version))
    with tempfile.TemporaryDirectory(prefix="cargobike-training-") as temporary:
        local = files.local(folder.path)
        if local is None:
            local = Path(temporary, "rows")
            files.download(folder, local)
        return format_of(record.data_format).read(sorted(local.glob("part-r-*")))


def tf_schema(types: dict[str, str], lengths: dict[str, int]) -> dict[str, Any]:
    """Return features of TensorFlow for columns: whole numbers and truths are int64, numbers float32, the rest text."""
    tf = load("tensorflow:io"), load("tensorflow:dtypes")
    schema = {}
    for name, kind in types.items():
        inner = kind.removeprefix("list<").rpartition(": ")[2].removesuffix(">")
        is_whole = inner.startswith(("int", "uint", "bool", "timestamp", "date"))
        is_number = inner.startswith(("float", "double", "half"))
        dtype = tf[1].int64 if is_whole else tf[1].float32 if is_number else tf[1].string
        if not kind.startswith("list<"):
            schema[name] = tf[0].FixedLenFeature([], dtype)
        elif name in lengths:
            schema[name] = tf[0].FixedLenFeature([lengths[name]], dtype)
        else:
            schema[name] = tf[0].VarLenFeature(dtype)
    return schema


def _write(df: Any, name: str, version: int, data_format: str, mode: str, description: str) -> None:
    if mode not in {"append", "overwrite"}:
        raise InvalidInputError(f"write_mode={mode!r} was given; there are 'append' and 'overwrite'.")
    chosen: Format = format_of(data_format)
    table = without_numbers(read_frame(df))
    name = name.lower()
    before = next((one for one in every() if (one.name, one.version) == (name, version)), None)
    appends = before is not None and mode == "append"
    if appends and before is not None and before.features != _types(table):
        raise InvalidInputError(f"{name} has the columns {before.features}; {_types(table)} cannot be appended.")
    files = ProjectFiles()
    part = before.parts if appends and before is not None else 0
    with tempfile.TemporaryDirectory(prefix="cargobike-training-") as temporary:
        chosen.write(table, Path(temporary, f"part-r-{part:05d}{chosen.suffix}"))
        written = sorted(path for path in Path(temporary).iterdir() if path.is_file())
        if not appends:
            files.storage.delete(_folder(name, version))
        for number, path in enumerate(written, part):
            files.storage.write(f"{_rows_folder(name, version)}/part-r-{number:05d}{chosen.suffix}", path)
    record = TrainingDatasetRecord(
        name=name,
        version=version,
        data_format=data_format,
        description=description,
        features=_types(table),
        lengths=_lengths(table),
        parts=part + len(written),
        rows=len(table) + (before.rows if appends and before is not None else 0),
        at=time.time(),
    )
    files.storage.write(f"{_folder(name, version)}/{_RECORD}", msgspec.json.encode(record))


def _types(table: pa.Table) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema}


def _lengths(table: pa.Table) -> dict[str, int]:
    """Return how long lists are, of columns in which all are equally long."""
    found = {}
    for field in table.schema:
        if pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type):
            lengths = {len(one) for one in table[field.name].to_pylist() if one is not None}
            if len(lengths) == 1:
                found[field.name] = lengths.pop()
    return found


def _root() -> str:
    return f"{project_name()}_Training_Datasets"


def _folder(name: str, version: int) -> str:
    return f"{_root()}/{name}_{version}"


def _rows_folder(name: str, version: int) -> str:
    return f"{_folder(name, version)}/{name}"
