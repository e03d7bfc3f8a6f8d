"""One set of ranks, and torch's connections between them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


class Lane:
    """A set of ranks as one of them sees it. Connections are made at the first operation that needs them.

    Attributes:
        ranks: The set, in order.
        position: Which of them this is; -1 if it is not one of them.
    """

    def __init__(self, store: Any, ranks: Sequence[int], rank: int, timeout: timedelta) -> None:
        self._store, self._timeout = store, timeout
        self._groups: dict[str, Any] = {}
        self.ranks = tuple(ranks)
        self.position = self.ranks.index(rank) if rank in self.ranks else -1

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.ranks)

    def group(self, tensor: torch.Tensor) -> Any:
        """Return the process group that moves such tensors: gloo, or NCCL for those on GPUs."""
        kind = tensor.device.type
        if kind not in self._groups:
            store = dist.PrefixStore(kind, self._store)
            if kind == "cuda":
                options = dist.ProcessGroupNCCL.Options()
                options._timeout = self._timeout
                self._groups[kind] = dist.ProcessGroupNCCL(store, self.position, self.size, options)
            else:
                self._groups[kind] = dist.ProcessGroupGloo(store, self.position, self.size, self._timeout)
        return self._groups[kind]

    def abort(self) -> None:
        """Let operations fail that wait for other ranks, in whatever thread they do."""
        for group in self._groups.values():
            with contextlib.suppress(RuntimeError):
                group.abort()
