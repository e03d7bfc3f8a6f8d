"""The process that callers talk to: protocols, checks, the queue, batches, metrics.

Deciding is apart from doing: `desk` knows no clock, no socket and no event loop; `protocols` turns bodies into rows and
answers into bodies; `web` and the files here read and write, and decide nothing about whose turn it is.
"""

from __future__ import annotations
