"""Predictions for every row of a source, on workers of this machine: nothing is computed twice, the order stays.

`program.py` runs in workers, `driving.py` gives them pieces and outlives their deaths, `keeping.py` keeps what is done
until all of it is, `front.py` puts them together. Spark's DataFrames are in `data/inference.py`.
"""
