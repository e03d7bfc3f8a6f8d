"""Layer 1: WHAT to try. Spaces, optimizers, stop rules.

Pure: no I/O on the way, no clock, no thread. An optimizer is a deterministic function of its seed and of what
it was shown, so that a search can be replayed from its journal. How trials are run is none of this room's
business.
"""
