"""Folders of MLflow: versions written as such folders, and such folders read as versions.

`exchanging.py` is the door. `exporting.py` and `importing.py` need no MLflow; `loading.py` is what MLflow itself calls
to run a version that was exported, `schemas.py` translates signatures. Folders that only MLflow can run are run by it
(`flavours/mlflow.py`).
"""
