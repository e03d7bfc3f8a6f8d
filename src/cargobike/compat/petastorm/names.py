"""What the calls of Petastorm are called here."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_LOADER: Final = "cargobike.data.Loader"
_READER: Final = (
    *("dataset_url", "schema_fields", "reader_pool_type", "workers_count", "pyarrow_serialize", "results_queue_size"),
    *("seed", "shuffle_rows", "shuffle_row_groups", "shuffle_row_drop_partitions", "predicate", "rowgroup_selector"),
    *("num_epochs", "cur_shard", "shard_count", "shard_seed", "cache_type", "cache_location", "cache_size_limit"),
    *("cache_row_size_estimate", "cache_extra_settings", "hdfs_driver", "transform_spec", "filters", "storage_options"),
    *("zmq_copy_buffers", "filesystem", "convert_early_to_numpy"),
)
_BATCH_READER: Final = (
    "dataset_url_or_urls",
    *(name for name in _READER if name not in ("dataset_url", "pyarrow_serialize")),
)
_DROPPED: Final = frozenset(
    {
        *("reader_pool_type", "pyarrow_serialize", "results_queue_size", "shard_seed", "cache_row_size_estimate"),
        *("cache_extra_settings", "hdfs_driver", "zmq_copy_buffers", "convert_early_to_numpy"),
    }
)
_RENAMED: Final = {
    "dataset_url": "source",
    "dataset_url_or_urls": "source",
    "schema_fields": "columns",
    "workers_count": "threads",
    "cur_shard": "rank",
    "shard_count": "world_size",
}
_MATERIALIZE: Final = (
    *("spark", "dataset_url", "schema", "row_group_size_mb", "use_summary_metadata", "filesystem_factory"),
)

TRANSLATIONS: Final[tuple[Translation, ...]] = (
    Translation(
        "petastorm.make_reader",
        _LOADER,
        _READER,
        _RENAMED,
        _DROPPED,
        remark="Rows come in batches of arrays; write the data set once more with `data.write` to be rid of codecs.",
    ),
    Translation(
        "petastorm.make_batch_reader",
        _LOADER,
        _BATCH_READER,
        _RENAMED,
        _DROPPED,
        remark="Batches have `batch_size` rows, whatever the row groups; a loop over epochs replaces `num_epochs`.",
    ),
    Translation(
        "petastorm.TransformSpec",
        _LOADER,
        ("func", "edit_fields", "removed_fields", "selected_fields"),
        {"func": "transform", "selected_fields": "columns"},
        frozenset({"edit_fields", "removed_fields"}),
        remark="`transform=` takes a batch of arrays.",
    ),
    Translation(
        "petastorm.unischema.Unischema",
        "cargobike.data.write",
        ("name", "fields"),
        remark="Arrays of any shape are columns; types and shapes are kept without a schema of their own.",
    ),
    Translation(
        "petastorm.unischema.UnischemaField",
        "cargobike.data.write",
        ("name", "numpy_dtype", "shape", "codec", "nullable"),
        remark="See `Unischema`.",
    ),
    Translation(
        "petastorm.unischema.dict_to_spark_row",
        "cargobike.data.write",
        ("unischema", "row_dict"),
        remark="Give `data.write` a DataFrame of Spark's, or dicts of arrays.",
    ),
    *(
        Translation(f"petastorm.codecs.{name}", "cargobike.data.write", arguments, remark=remark)
        for name, arguments, remark in (
            ("ScalarCodec", ("spark_type",), "Numbers and text need no codec."),
            ("NdarrayCodec", (), "Arrays of one shape are tensors: eight times as quick to read."),
            ("CompressedNdarrayCodec", (), "Parquet compresses."),
            ("CompressedImageCodec", ("image_codec", "quality"), "Keep images as bytes, and decode in `transform=`."),
        )
    ),
    Translation(
        "petastorm.etl.dataset_metadata.materialize_dataset",
        "cargobike.data.write",
        _MATERIALIZE,
        {"dataset_url": "url"},
        frozenset({"spark", "schema", "use_summary_metadata", "filesystem_factory"}),
        remark="One call: `data.write(df, name)`.",
    ),
    Translation(
        "petastorm.etl.dataset_metadata.get_schema_from_dataset_url",
        "cargobike.data.open",
        ("dataset_url_or_urls", "hdfs_driver", "storage_options", "filesystem"),
        {"dataset_url_or_urls": "table"},
        frozenset({"hdfs_driver"}),
        remark="`data.open(name).schema`.",
    ),
    Translation(
        "petastorm.pytorch.DataLoader",
        _LOADER,
        ("reader", "batch_size", "collate_fn", "shuffling_queue_capacity"),
        {"reader": "source", "shuffling_queue_capacity": "mix"},
        frozenset({"collate_fn"}),
        remark='`to="torch"`; `shuffle=True` instead of a queue.',
    ),
    Translation(
        "petastorm.pytorch.BatchedDataLoader",
        _LOADER,
        ("reader", "batch_size", "transform_fn", "shuffling_queue_capacity"),
        {"reader": "source", "transform_fn": "transform", "shuffling_queue_capacity": "mix"},
        remark='`to="torch"`; `shuffle=True` instead of a queue.',
    ),
    Translation(
        "petastorm.pytorch.InMemBatchedDataLoader",
        _LOADER,
        ("reader", "batch_size", "transform_fn", "num_epochs", "seed", "rows_capacity", "shuffle"),
        {"reader": "source", "transform_fn": "transform"},
        frozenset({"num_epochs", "rows_capacity"}),
        remark="Give it a table in memory.",
    ),
    Translation(
        "petastorm.tf_utils.make_petastorm_dataset",
        "cargobike.data.Loader.as_tf_dataset",
        ("reader",),
        remark="A method of the loader.",
    ),
    Translation(
        "petastorm.tf_utils.tf_tensors",
        "",
        ("reader", "shuffling_queue_capacity", "min_after_dequeue"),
        remark="Tensors of a session of TensorFlow 1. In TensorFlow 2: `make_petastorm_dataset(reader)`.",
    ),
    Translation(
        "petastorm.spark.make_spark_converter",
        "cargobike.data.write",
        ("df", "parquet_row_group_size_bytes", "compression_codec", "dtype"),
        {"df": "source"},
        frozenset({"parquet_row_group_size_bytes", "compression_codec", "dtype"}),
        remark="`data.write(df, name)`, then `data.Loader(name, …)`.",
    ),
    Translation(
        "petastorm.spark.SparkDatasetConverter",
        _LOADER,
        remark="Over the table that `data.write(df, name)` has made.",
    ),
    *(
        Translation(f"petastorm.predicates.{name}", "", arguments, remark=remark)
        for name, arguments, remark in (
            ("in_lambda", ("predicate_fields", "predicate_func", "state_arg"), "Filter before writing the table."),
            ("in_set", ("inclusion_values", "predicate_field"), "Filter before writing the table."),
            ("in_intersection", ("inclusion_values", "_predicate_field"), "Filter before writing the table."),
            ("in_negate", ("predicate",), "Filter before writing the table."),
            ("in_reduce", ("predicate_list", "reduce_func"), "Filter before writing the table."),
            (
                "in_pseudorandom_split",
                ("fraction_list", "subset_index", "predicate_field"),
                "`feature_view.train_test_split` splits training data.",
            ),
        )
    ),
    Translation(
        "petastorm.ngram.NGram",
        "",
        ("fields", "delta_threshold", "timestamp_field", "timestamp_overlap"),
        remark="Form windows before writing the table.",
    ),
    *(
        Translation(f"petastorm.selectors.{name}", "", arguments, remark="Write a table for each part.")
        for name, arguments in (
            ("SingleIndexSelector", ("index_name", "values_list")),
            ("IntersectIndexSelector", ("single_index_selectors",)),
            ("UnionIndexSelector", ("single_index_selectors",)),
        )
    ),
    Translation(
        "petastorm.etl.rowgroup_indexing.build_rowgroup_index",
        "",
        ("dataset_url", "spark_context", "indexers", "hdfs_driver"),
        remark="See the selectors.",
    ),
    Translation(
        "petastorm.weighted_sampling_reader.WeightedSamplingReader",
        "",
        ("readers", "probabilities"),
        remark="Make a loader for each, and draw which comes next.",
    ),
    Translation(
        "petastorm.spark_utils.dataset_as_rdd",
        "",
        ("dataset_url", "spark_session", "schema_fields", "hdfs_driver"),
        remark="`spark.read.parquet` reads tables of `data.write`.",
    ),
    Translation(
        "petastorm.test_util.reader_mock.ReaderMock",
        _LOADER,
        ("schema", "schema_data_generator", "ngram"),
        remark="Give it a dict of arrays.",
    ),
    Translation(
        "petastorm.etl.petastorm_generate_metadata.generate_petastorm_metadata",
        "",
        ("spark", "dataset_url", "unischema_class", "use_summary_metadata", "hdfs_driver"),
        remark="Tables need none. The command `petastorm-generate-metadata.py` is there, too.",
    ),
)
