"""How bytes get from one process of an experiment to another so that no other can change, repeat or invent any.

From the bottom up: `sealing` protects one piece of a frame, `handshake` proves who is there and makes the keys (bytes
in, bytes out, no socket), `channel` carries frames over a socket, `connection` listens and connects, `lobby` keeps
those who have proved nothing yet. What frames say is not known here: parameter servers have their `messages`.
"""
