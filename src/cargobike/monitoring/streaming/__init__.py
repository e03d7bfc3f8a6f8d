"""Watch on Spark: Structured Streaming reads the log, executors sum rows into states, one process judges.

`source.py` is the log as a source of streams, `tasks.py` what executors do, `query.py` the query, as a follower whose
rows stay where they are. Where in the log to go on is kept with the monitor, not in Spark's checkpoint: a query that
is killed begins anew there, and so does a watcher on this machine.
"""
