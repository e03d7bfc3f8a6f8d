"""What every measurement stands on: fresh processes, venvs of the peers, facts about the machine, tables.

`answers.py` is the only file here that is imported by the measured programs, inside the peers' own venvs; it
needs nothing but the standard library.
"""
