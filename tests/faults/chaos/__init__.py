"""Searches under random faults: `python tests/faults/chaos --schedules 200 --seed 0`.

A schedule is drawn from its seed: a search, in one of several worlds, and what befalls it at which moments. `playing`
runs the search as a program of its own and strikes it from outside; `outside` reads the journal with a parser that
shares no code with ours and holds it against what an undisturbed search would have said.
"""
