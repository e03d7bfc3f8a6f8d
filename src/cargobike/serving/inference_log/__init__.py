"""What was asked and answered, kept for those who watch a model: requests, answers, version, time and latency.

`log.py` takes requests in the event loop of a front, and never makes one wait; a thread turns them into columns
(`columns.py`) and hands them to a sink: Parquet files of the project (`file_sink.py`, named in `places.py`) or Kafka
(`kafka/`). `reading.py` reads windows of time back, `upkeep.py` merges small files and forgets old ones.
"""
