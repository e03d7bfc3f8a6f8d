"""Where an inference log goes, and what is counted on the way."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from cargobike.serving.inference_log.messages import Requests

_ALL: Final = 2**32

Entry = tuple[str, float, float, int, int, "Sequence[Any] | None", "Sequence[Any] | None"]
"""A request: its id, when it came (seconds since 1970), how long it took (seconds), version, status, rows, answers."""


class Sample:
    """Chooses a share of all requests by their ids: the same ones on every host and in every process."""

    def __init__(self, share: float) -> None:
        self._below = round(share * _ALL)
        self.is_all = self._below == _ALL

    def keeps(self, request_id: bytes) -> bool:
        """Tell whether a request is one of them."""
        return self.is_all or zlib.crc32(request_id) < self._below


@dataclass(slots=True)
class Counts:
    """What became of requests. Each number is written by one thread only, so none needs a lock.

    Attributes:
        taken: Requests that were to be kept, after sampling.
        refused: Those that found no room, and were let go before anything was done with them.
        written: Those that are kept for good.
        lost: Those that could not be kept: no room while the storage was gone, or not understood.
        failures: How often a storage or broker failed; such writes are tried again.
    """

    taken: int = 0
    refused: int = 0
    written: int = 0
    lost: int = 0
    failures: int = 0

    @property
    def dropped(self) -> int:
        """How many requests were to be kept, and are not."""
        return self.refused + self.lost


class Sink(Protocol):
    """Keeps requests somewhere. All calls come from one thread, and may take as long as they like: no request waits.

    No call raises because the storage or the broker is gone: what was put stays here, within bounds, and is tried again
    by later calls of `flush`.
    """

    def put(self, entries: Sequence[Entry]) -> None:
        """Take requests; what there is no room for is counted as lost."""
        ...

    def put_packed(self, requests: Requests) -> None:
        """Take requests as they have travelled."""
        ...

    def flush(self) -> bool:
        """Try to keep what was put; returns whether all of it is kept."""
        ...

    def tend(self) -> None:
        """Do what has to be done now and then, if it is time."""
        ...

    def close(self) -> None:
        """Give up what is not kept, and count it."""
        ...
