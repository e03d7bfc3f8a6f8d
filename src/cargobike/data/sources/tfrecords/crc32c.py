"""The checksum of TFRecord files, CRC-32C, of many stretches of a buffer at once.

With the library `google-crc32c`, which uses the processor's instruction, else with NumPy alone. A CRC is linear: that
of a block is the exclusive or of one table entry per byte, and that of a record the exclusive or of its blocks' CRCs,
each moved by the bytes that follow it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from google_crc32c import value as _fast
except ImportError:  # an extra
    _fast = None

_POLYNOMIAL = 0x82F63B78
_BLOCK = 64
_AT_ONCE = 4 << 20
_MASK_DELTA = 0xA282EAD8

Numbers = npt.NDArray[np.int64]
Checksums = npt.NDArray[np.uint32]


def crc32c(buffer: Any, starts: Numbers, lengths: Numbers) -> Checksums:
    """Return the CRC-32C of each stretch of a buffer of bytes.

    Example:
        >>> text = b"123456789"
        >>> hex(crc32c(text, np.array([0]), np.array([9]))[0])
        '0xe3069283'
    """
    if _fast is not None:
        view = memoryview(buffer)
        pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
        return np.fromiter((_fast(bytes(view[at : at + size])) for at, size in pairs), np.uint32, len(starts))
    return with_numpy(buffer, starts, lengths)


def masked(checksums: Checksums) -> Checksums:
    """Return checksums as TFRecord files hold them: turned and moved, so that a checksum of checksums stays one."""
    turned = (checksums >> np.uint32(15)) | (checksums << np.uint32(17))
    return turned + np.uint32(_MASK_DELTA)


def masked_of(data: bytes) -> int:
    """Return the masked checksum of some bytes."""
    value: int
    if _fast is not None:
        value = _fast(data)
    elif len(data) <= 64:
        value = 0xFFFFFFFF
        for byte in data:
            value = _BYTES[(value ^ byte) & 0xFF] ^ (value >> 8)
        value ^= 0xFFFFFFFF
    else:
        value = int(with_numpy(data, np.array([0]), np.array([len(data)]))[0])
    return (((value >> 15) | (value << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def with_numpy(buffer: Any, starts: Numbers, lengths: Numbers) -> Checksums:
    """Return the CRC-32C of each stretch, computed by NumPy in pieces of bounded memory."""
    data = np.frombuffer(buffer, np.uint8)
    found = np.zeros(len(starts), np.uint32)
    ends = np.cumsum(lengths)
    first = 0
    while first < len(starts):
        done = ends[first - 1] if first else 0
        after = max(first + 1, int(np.searchsorted(ends, done + _AT_ONCE, "right")))
        found[first:after] = _of_some(data, starts[first:after], lengths[first:after])
        first = after
    return found


def _of_some(data: npt.NDArray[np.uint8], starts: Numbers, lengths: Numbers) -> Checksums:
    """Return the checksums of stretches: each begins with a block that zeros in front fill, which change nothing."""
    blocks = np.maximum(1, -(-lengths // _BLOCK))
    total = int(blocks.sum())
    owner = np.repeat(np.arange(len(starts)), blocks)
    firsts = np.cumsum(blocks) - blocks
    later = blocks[owner] - 1 - (np.arange(total) - firsts[owner])  # blocks that follow in the same record
    values = np.empty(total, np.uint32)
    ends = (starts + lengths)[owner] - later * _BLOCK
    rows = max(1, _AT_ONCE // _BLOCK)
    table, within = _block_table(), np.arange(_BLOCK)
    for low in range(0, total, rows):
        part = slice(low, low + rows)
        places = ends[part, None] - _BLOCK + within
        inside = places >= starts[owner[part], None]
        taken = np.where(inside, data[np.where(inside, places, 0)] if data.size else 0, 0)
        values[part] = np.bitwise_xor.reduce(table[within, taken], axis=1)
    values = _moved(values, later * _BLOCK)
    begun = _moved(np.full(len(starts), 0xFFFFFFFF, np.uint32), lengths)
    return ~(np.bitwise_xor.reduceat(values, firsts) ^ begun) if len(starts) else values


def _moved(values: Checksums, by: Numbers) -> Checksums:
    """Return CRCs as they are after so many further zero bytes, each by its own number."""
    values = values.copy()
    for bit in range(int(by.max(initial=0)).bit_length()):
        chosen = np.flatnonzero((by >> bit) & 1)
        if chosen.size:
            table = _move_table(bit)
            some = values[chosen]
            values[chosen] = (
                table[0][some & 0xFF]
                ^ table[1][(some >> 8) & 0xFF]
                ^ table[2][(some >> 16) & 0xFF]
                ^ table[3][some >> 24]
            )
    return values


@cache
def _byte_table() -> Checksums:
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ np.uint32(_POLYNOMIAL), values >> 1)
    return values


@cache
def _block_table() -> Checksums:
    """Return what each value of a byte adds to the CRC of a block, by its place in the block."""
    rows = [_byte_table()]
    for _ in range(_BLOCK - 1):
        last = rows[-1]
        rows.append(_byte_table()[last & 0xFF] ^ (last >> 8))
    return np.array(rows[::-1])


@cache
def _move_table(bit: int) -> Checksums:
    """Return, for each byte of a CRC, what it becomes after 2 ** bit zero bytes."""
    if bit == 0:
        every = np.arange(256, dtype=np.uint32)
        once = [_byte_table()[value & 0xFF] ^ (value >> 8) for value in (every, every << 8, every << 16, every << 24)]
        return np.array(once)
    half = _move_table(bit - 1)
    twice: Checksums = (
        half[0][half & 0xFF] ^ half[1][(half >> 8) & 0xFF] ^ half[2][(half >> 16) & 0xFF] ^ half[3][half >> 24]
    )
    return twice


_BYTES: list[int] = _byte_table().tolist()
