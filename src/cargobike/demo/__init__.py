"""What `cargobike demo` shows: a search over a small neural network.

Internal: public is the command `cargobike demo`.
"""
