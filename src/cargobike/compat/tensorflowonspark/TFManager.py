"""What scripts know as `ctx.mgr`: the queues of a node, and its state."""

from __future__ import annotations

from cargobike.core.errors import InvalidInputError
from cargobike.data.pushing.inbox import Inbox
from cargobike.data.pushing.receiving import Receiver

__all__ = ["TFManager"]


class TFManager:
    """The queues of a node. Rows come in chunks: take them with a `TFNode.DataFeed`.

    Args:
        receiver: What others push rows to.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._values: dict[str, object] = {}

    def inbox(self, queue: str) -> Inbox:
        """Return what comes for a queue."""
        return self._receiver.inbox(queue)

    def get(self, key: str) -> object:
        """Return a value of the node; `"state"` is `"running"` or `"terminating"`."""
        if key == "state":
            closed = any(inbox.is_closed for inbox in self._receiver.inboxes.values())
            return "terminating" if closed else self._values.get(key, "running")
        return self._values.get(key)

    def set(self, key: str, value: object) -> None:
        """Keep a value; the state `"terminating"` ends feeding."""
        self._values[key] = value
        if (key, value) == ("state", "terminating"):
            for inbox in self._receiver.inboxes.values():
                inbox.close()

    def get_queue(self, qname: str) -> object:
        """Refuse: there is no queue of single rows any more."""
        raise InvalidInputError(
            f"Rows come in chunks, and there is no queue {qname!r} of single ones: take them with "
            "TFNode.DataFeed(ctx.mgr).next_batch(n), and give results with batch_results."
        )
