"""Looking at results: analysis (numbers), figures (data for Plotly) and pages made of them.

Everything here reads a folded journal (`core.record.ExperimentRecord`) and never a driver's memory, so that a running
experiment, a finished one and one from last year look the same. Nothing here decides or changes anything.

Internal: public is `cargobike.dashboard`.
"""
