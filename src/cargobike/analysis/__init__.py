"""Numbers and figures about experiments; no web, no file.

Internal: public names are in `cargobike.results`: `result.plot`, `result.importance()`.
"""
