"""Tables in, tensors out: data for train functions, and predictions for tables.

Internal: public names are in `cargobike.experiment`: `launch(data=…)`, `inference`.
"""
