"""Train functions as estimators of scikit-learn and Spark: fit through an experiment, predict with what it saved.

Internal: public names are in `cargobike.sklearn` and `cargobike.spark`.
"""
