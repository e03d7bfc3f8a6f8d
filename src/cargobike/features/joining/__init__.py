"""Joins in time: for each row of a spine, what was true of its keys at its time. DuckDB here, Spark at scale."""
