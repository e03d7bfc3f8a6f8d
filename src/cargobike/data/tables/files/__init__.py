"""How rows become files: row groups, their digests, Parquet files, on executors as in the driver."""
