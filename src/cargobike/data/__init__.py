"""Tables in, tensors out: what a train function is fed with, and predictions for tables.

Internal: public names are in `cargobike.experiment`: `launch(data=…)`, `inference`.
"""
