"""How many different values a column has: exact while there are few, estimated by HyperLogLog beyond.

Which of the two it is depends on the values alone, so that merged states equal states that were made at once.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from cargobike.features.hashing import Hashes

FEW: Final = 256
_BITS: Final = 11
_REGISTERS: Final = 1 << _BITS
_REST: Final = 53
_ALPHA: Final = 0.7213 / (1 + 1.079 / _REGISTERS)

State = tuple[bytes, bytes]
"""The hashes of all different values, in order; or, if there are more than `FEW`, the registers."""


def count_distinct(hashes: Hashes) -> State:
    """Return the state of hashed values."""
    registers = _registers(hashes)
    if _estimate(registers) < 2 * FEW:
        different = np.unique(hashes)
        if len(different) <= FEW:
            return different.tobytes(), b""
    return b"", registers.tobytes()


def merge(states: list[State]) -> State:
    """Return the state of all values together."""
    if all(not registers for _, registers in states):
        different = np.unique(np.concatenate([np.empty(0, np.uint64), *(_hashes(few) for few, _ in states)]))
        if len(different) <= FEW:
            return different.tobytes(), b""
    rows = [_registers_of(state) for state in states]
    return b"", np.maximum.reduce(rows).tobytes()


def number(state: State) -> int:
    """Return how many different values there are; within about 2 % if there are many."""
    few, registers = state
    return len(few) // 8 if not registers else round(_estimate(np.frombuffer(registers, dtype=np.uint8)))


def is_exact(state: State) -> bool:
    """Tell whether the number is exact."""
    return not state[1]


def _hashes(few: bytes) -> Hashes:
    return np.frombuffer(few, dtype=np.uint64)


def _registers_of(state: State) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    few, registers = state
    return np.frombuffer(registers, dtype=np.uint8) if registers else _registers(_hashes(few))


def _registers(hashes: Hashes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return, for each value of the first bits, the most leading zeros that the other bits had, plus one."""
    if not len(hashes):
        return np.zeros(_REGISTERS, dtype=np.uint8)
    first = (hashes >> np.uint64(_REST)).astype(np.int64)
    rest = (hashes & np.uint64((1 << _REST) - 1)).astype(np.float64)  # exact: a double holds 53 bits
    zeros = _REST + 1 - np.frexp(rest)[1]  # of zero itself the exponent is 0: 54, one more than any other
    seen = np.bincount(first * 64 + zeros, minlength=_REGISTERS * 64).reshape(_REGISTERS, 64) > 0
    return np.where(seen.any(axis=1), 63 - np.argmax(seen[:, ::-1], axis=1), 0).astype(np.uint8)


def _estimate(registers: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> float:
    raw = _ALPHA * _REGISTERS**2 / float(np.sum(np.exp2(-registers.astype(np.float64))))
    empty = int(np.count_nonzero(registers == 0))
    return _REGISTERS * math.log(_REGISTERS / empty) if raw <= 2.5 * _REGISTERS and empty else raw
