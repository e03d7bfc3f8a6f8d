"""How models of each kind become files, and files predict again.

`flavour.py` says what a flavour does, `registry.py` finds the one that fits; each file that is named for a library is
one. `rows.py` and `answers.py` turn rows into arrays and arrays into plain answers, `pickling.py` holds all that
runs code of a file. Versions, aliases and where files are kept belong to the room around this one.
"""
