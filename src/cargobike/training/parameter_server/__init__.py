"""Asynchronous training through servers that hold the parameters: workers pull and push, without waiting.

Each server holds a shard: some of the parameters, balanced by bytes, with the optimizer's state for them. What lives
here: the messages and the connection they travel on, the codecs, the shard, the server around it, the client in a
worker. Starting servers belongs to the gang, which calls `serve` in each.
"""

from cargobike.training.parameter_server.serving import serve

__all__ = ["serve"]
