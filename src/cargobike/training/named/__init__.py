"""Collectives that ranks match by name, not by the order of their calls.

`negotiation` decides, without a clock or a socket; `channel` carries what it says between ranks; `execution` moves
tensors in the order that was decided; `engine` puts them together.
"""
