"""A loader as an `IterableDataset` of torch, for `torch.utils.data.DataLoader` and what is built on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.utils.data

from cargobike.data.loading.frameworks.batches import Batches


class TorchDataset(torch.utils.data.IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]  # untyped
    """Batches of a loader; give it to a `DataLoader` with `batch_size=None`.

    The processes of a `DataLoader` with `num_workers` divide the steps among them, and together give the same batches
    as the loader does. They begin the epoch that was set in the process that started them: call `set_epoch` there
    before each epoch, as with torch's distributed samplers. Without processes the epoch advances by itself.
    """

    def __init__(self, loader: Batches) -> None:
        super().__init__()
        self.loader = loader
        self._reading: Batches | None = None

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        if info is None:
            self._reading = None
            return iter(self.loader)
        if self._reading is None:
            self._reading = self.loader.for_worker(info.id, info.num_workers)
        return iter(self._reading)

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the position, in the process that reads: torchdata's protocol."""
        return (self._reading or self.loader).state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a position."""
        info = torch.utils.data.get_worker_info()
        if info is None:
            self.loader.load_state_dict(state)
        else:
            self._reading = self.loader.for_worker(info.id, info.num_workers)
            self._reading.load_state_dict(state)
