"""Numbered files that several writers add to: versions, facts.

Numbers begin at 1 and have no gaps, also with several writers at once: each tries to create the file of the next
number, one succeeds, the others try the number after it. So the newest is found by a few looks, without a listing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cargobike.core.errors import StoreError
from cargobike.store.files.storage import Storage

MOST: Final = 10**9
"""No asset has more versions; a storage that says so is damaged, or not to be trusted."""

PathOf = Callable[[int], str]
"""Where the file of a number lies on the storage."""


def newest_number(storage: Storage, path_of: PathOf, at_least: int = 0) -> int:
    """Return the highest number that has a file; 0 if there is none.

    Args:
        storage: Where the files lie.
        path_of: Where the file of a number lies.
        at_least: A number that is known to be taken, if any.

    Raises:
        StoreError: If there are more than anything can have.
    """
    low, step = at_least, 1
    while storage.stat(path_of(low + step)) is not None:
        low, step = low + step, step * 2
        if low > MOST:
            raise _too_many(storage)
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if storage.stat(path_of(middle)) is not None:
            low = middle
        else:
            high = middle
    return low


def create_next(storage: Storage, path_of: PathOf, content_of: Callable[[int], bytes], first: int) -> int:
    """Create the file of the next number that is free, and return the number.

    Args:
        storage: Where the files lie.
        path_of: Where the file of a number lies.
        content_of: What is written into the file of a number.
        first: The number to try first; all numbers below it are taken.

    Raises:
        StoreError: If there are more than anything can have.
    """
    for number in range(first, MOST):
        if storage.create(path_of(number), content_of(number)):
            return number
    raise _too_many(storage)


def _too_many(storage: Storage) -> StoreError:
    return StoreError(f"{storage} has more than {MOST} versions of one thing, which nothing has.")
