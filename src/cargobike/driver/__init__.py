"""Layer 2: events in, commands out.

`scheduler.py` decides and is pure; `loop.py` does and is thin. This room joins search, engines, worker and store,
and is the only one that knows them all.
"""
