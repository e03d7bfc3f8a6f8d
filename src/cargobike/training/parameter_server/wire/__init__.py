"""How bytes get from a worker to a server and back so that nobody in between can change, repeat or invent any.

From the bottom up: `sealing` protects one piece of a frame, `handshake` proves who is there and makes the keys (bytes
in, bytes out, no socket), `channel` carries frames over a socket, `connection` listens and connects, `lobby` keeps
those who have proved nothing yet. What frames say is not known here: that is in `messages`.
"""
