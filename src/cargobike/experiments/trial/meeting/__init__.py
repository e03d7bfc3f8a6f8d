"""How ranks meet, one file for each framework.

`way.py` holds the interface, `ways.py` the list: another framework is one file and one line.
"""
