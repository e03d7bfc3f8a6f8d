"""Layer 0: records, facts, ids, states, errors, settings.

Everything here is plain data and pure functions on the standard library and msgspec. No I/O, no thread, no
clock: the time is passed in. Every other room may import this one; this one imports none.

Internal: public names are in `cargobike.errors`, `cargobike.results`, `cargobike.journals`.
"""
