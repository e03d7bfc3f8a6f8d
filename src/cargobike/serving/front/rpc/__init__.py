"""The Open Inference Protocol over gRPC, an extra: its messages, tensors in them, and the server beside HTTP.

What a request means, who may send it and how it is answered is decided elsewhere: calls go to the same `Predicting`,
the same desk and the same log as requests over HTTP.
"""

from __future__ import annotations
