"""Ranks that stay in their processes while others come and go: who is lost is left out, and the rest meet again.

A gang of an experiment is started anew, from its last checkpoint, when it loses a rank. Here the ranks that are left
keep what they have in memory. `roster.py` decides, pure; `driving.py` starts workers and carries it out; `program.py`
runs in a worker, `member.py` is what a rank calls, `line.py` how it talks to the driver. Internal.
"""
