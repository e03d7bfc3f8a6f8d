"""Rows in, batches out: the order of an epoch, each rank's share of it, and threads that read ahead.

`order.py`, `shares.py` and `state.py` decide and are pure; `columns.py` and `decoding.py` say what becomes of a column;
`blocks.py`, `schedule.py` and `ahead.py` read; `loader.py` is what users see.
"""
