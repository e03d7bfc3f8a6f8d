"""What was asked and answered, kept for those who watch a model: requests, answers, version, time and latency.

A front packs requests (`packing.py`) and sends them to a process of the log (`process.py`, `messages.py`), so that none
waits. There `log.py` takes them, a thread turns them into columns (`unpacking.py`, `columns.py`) and hands them to a
sink: Parquet files of the project (`file_sink.py`, named in `places.py`) or Kafka (`kafka/`). `reading.py` reads
windows of time back, `upkeep.py` merges small files and forgets old ones.
"""
