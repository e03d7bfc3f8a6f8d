"""TensorBoard's event files, written without TensorFlow: records of protocol buffers, each with two checksums.

Only what is needed here is encoded: scalars, and what the HParams plugin reads of a trial. Field numbers are those of
TensorBoard's `event.proto`, `summary.proto` and `plugins/hparams/plugin_data.proto`.
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Mapping
from typing import Any, Final, Literal

_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_STATUS: Final = {"completed": 1, "stopped": 1, "failed": 2}


def _table() -> list[int]:
    table = []
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE: Final = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of some bytes.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def record(event: bytes) -> bytes:
    """Wrap an event as a record of a file."""
    return b"%b%b%b" % (_length(len(event)), event, struct.pack("<I", _masked(event)))


def file_start(at: float) -> bytes:
    """Return the record that every event file begins with."""
    return record(_double(1, at) + _bytes(3, b"brain.Event:2"))


def scalars(values: Mapping[str, float], step: int, at: float) -> bytes:
    """Return a record with the values of some tags at a step."""
    summary = b"".join(_bytes(1, _tag(tag) + b"\x15" + _float32(value)) for tag, value in values.items())
    return record(_double(1, at) + b"\x10" + _varint(step & 0xFFFFFFFFFFFFFFFF) + _bytes(5, summary))


def session_start(params: Mapping[str, Any], group: str, at: float) -> bytes:
    """Return the record with which the HParams plugin learns of a trial and its hyperparameters."""
    entries = b"".join(
        _bytes(1, _bytes(1, name.encode("utf-8", "replace")) + _bytes(2, _value(value)))
        for name, value in params.items()
    )
    info = entries + _bytes(4, group.encode()) + _double(5, at)
    return _hparams("_hparams_/session_start_info", _bytes(3, info), at)


def session_end(state: Literal["completed", "stopped", "failed"], at: float) -> bytes:
    """Return the record that says how a trial ended."""
    return _hparams("_hparams_/session_end_info", _bytes(4, b"\x08" + _varint(_STATUS[state]) + _double(2, at)), at)


def _hparams(tag: str, data: bytes, at: float) -> bytes:
    # The plugin looks for a tensor with its name in the description; the tensor itself is an empty one.
    description = _bytes(9, _bytes(1, _bytes(1, b"hparams") + _bytes(2, data)))
    tensor = _bytes(8, b"\x08\x01" + _bytes(2, _bytes(2, b"\x08\x00")))
    return record(_double(1, at) + _bytes(5, _bytes(1, _tag(tag) + tensor + description)))


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return b"\x20" + (b"\x01" if value else b"\x00")
    if isinstance(value, int | float):
        with contextlib.suppress(OverflowError):  # an integer without limits
            return b"\x11" + struct.pack("<d", float(value))
    return _bytes(3, (value if isinstance(value, str) else repr(value)).encode("utf-8", "replace"))


@functools.lru_cache(maxsize=4096)
def _tag(tag: str) -> bytes:
    return _bytes(1, tag.encode("utf-8", "replace"))


@functools.lru_cache(maxsize=4096)
def _length(size: int) -> bytes:
    packed = struct.pack("<Q", size)
    return packed + struct.pack("<I", _masked(packed))


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _bytes(field: int, data: bytes) -> bytes:
    return b"%b%b%b" % (_varint(field << 3 | 2), _varint(len(data)), data)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _varint(value: int) -> bytes:
    if value < 0x80:
        return b"%c" % value
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
