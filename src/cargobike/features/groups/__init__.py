"""Feature groups: defining them, writing rows by key and event time, reading them as they are or were.

`group.py` holds what users see. How rows are joined with labels, and the online store, are other rooms.
"""
