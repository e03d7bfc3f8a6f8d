"""What was made of files, kept while a process runs: what is listed again, and has not changed, is not read again."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from cargobike.store.files.storage import Storage

_T = TypeVar("_T")
MOST_KEPT: Final = 100_000
"""How many files a process remembers; beyond, it forgets the half that it has known longest."""


class ReadOnce(Generic[_T]):
    """What a function made of files, by storage, path and token. May be used by several threads.

    What it returns is shared by all callers, and so must not be changed by them. Errors are not remembered.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, str], _T] = {}

    def get(self, storage: Storage, path: str, token: str, make: Callable[[], _T]) -> _T:
        """Return what was made of a file as it is: with this token."""
        key = storage.url, path, token
        try:
            return self._known[key]
        except KeyError:
            made = make()
        with self._lock:
            if len(self._known) >= self._most:
                for old in list(itertools.islice(self._known, self._most // 2)):
                    del self._known[old]
            self._known[key] = made
        return made
