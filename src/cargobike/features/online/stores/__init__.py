"""Where the newest rows of groups lie for look-ups: SQLite or LMDB on this host, or Redis for several hosts.

`store.py` says what each of them guarantees; `choosing.py` finds the one that a group was made with.
"""
