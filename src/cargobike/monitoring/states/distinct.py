"""How many different values a column has, from the smallest hashes of them: exact for few, a good guess for many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

KEPT: Final = 256
"""How many hashes are kept: up to so many values are counted exactly, more with an error of about 6 %."""
NONE: Final = np.uint64(2**64 - 1)
"""Stands where there is no hash."""


def hashes_of_numbers(values: NDArray[np.float64]) -> Hashes:
    """Return a hash for each number; equal numbers have equal ones."""
    bits = (values + 0.0).view(np.uint64)  # minus zero becomes zero
    mixed = bits ^ (bits >> np.uint64(32))
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return mixed


def hash_of_text(text: str) -> int:
    """Return the hash of a text, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hashes_of_texts(texts: Iterable[str]) -> Hashes:
    """Return a hash for each text."""
    return np.fromiter(map(hash_of_text, texts), np.uint64)


def no_hashes(columns: int) -> Hashes:
    """Return what is kept of columns without values."""
    return np.full((columns, KEPT), NONE, np.uint64)


def take_in(kept: Hashes, more: Hashes) -> None:
    """Put the hashes of more values of a column to those that are kept, in place: the smallest stay."""
    more = more[more < kept[-1]]
    if not len(more):
        return
    if len(more) > 8 * KEPT:  # sorting all takes long, and few of them can stay
        lower = _merged(kept, more[more <= np.partition(more, 4 * KEPT)[4 * KEPT]])
        if len(lower) == KEPT:
            kept[:] = lower
            return
    lower = _merged(kept, more)
    kept[: len(lower)] = lower
    kept[len(lower) :] = NONE


def _merged(kept: Hashes, more: Hashes) -> Hashes:
    """Return the smallest different hashes of both, ascending."""
    both = np.sort(np.concatenate([kept, more]))
    is_new = np.empty(len(both), bool)
    is_new[0] = True
    np.not_equal(both[1:], both[:-1], out=is_new[1:])
    return both[is_new][:KEPT]


def count_of(kept: Hashes) -> int:
    """Return about how many different values there were."""
    there = int((kept != NONE).sum())
    if there < KEPT:
        return there
    return round((KEPT - 1) / (float(kept[-1]) / 2.0**64))
