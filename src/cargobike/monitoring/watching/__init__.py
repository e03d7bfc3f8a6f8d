"""Watch rows as they come: into windows, from windows to judgements, from judgements to alarms.

`features.py` makes features of what was logged, `windows.py` gathers rows into windows, `judging.py` judges those and
raises alarms, `watching.py` puts them together: rows and a position in, facts out, no input or output and no clock.
The same parts are used wherever a monitor runs.
"""
