"""Layer 1: WHERE workers live.

`engine.py` holds the interface, each file beside it one technology. An engine starts, watches and kills workers; it
knows nothing of trials, and does not talk to the workers it started: they connect back to the driver by themselves.
"""
