"""What a loader is to a framework."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np

from cargobike.data.loading.options import Options


class Batches(Protocol):
    """A loader, as far as frameworks use it."""

    options: Options

    @property
    def columns(self) -> list[str]:
        """The names of the arrays in a batch."""

    @property
    def epoch(self) -> int:
        """Which epoch the next batch belongs to."""

    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""

    def state_dict(self) -> dict[str, Any]:
        """Return the position."""

    def load_state_dict(self, state: object) -> None:
        """Go to a position."""

    def batch_spec(self) -> dict[str, tuple[np.dtype[Any], tuple[int | None, ...]]]:
        """Return type and shape of one row of each array."""

    def for_worker(self, number: int, workers: int) -> Self:
        """Return a loader for one of several processes that divide the steps among them."""
