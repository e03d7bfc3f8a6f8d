"""The part of the dashboard that shows monitors: windows over time, alarms to acknowledge, now against the reference.

`following.py` keeps what journals say while the server runs, `describing.py` makes answers of it, `drawing.py`
pictures, `section.py` has the routes.
"""
