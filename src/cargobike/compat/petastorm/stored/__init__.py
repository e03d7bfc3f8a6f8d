"""What lies on disk: the metadata of a data set, pickles that are read without running anything, Parquet files."""
