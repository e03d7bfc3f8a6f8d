"""Write pickles, of protocol 2, of things that need not be there: classes are only named."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping


def object_of(module: str, name: str, state: bytes = b"") -> bytes:
    """Return an object of a class, with its attributes."""
    return name_of(module, name) + b")\x81" + (state + b"b" if state else b"")


def name_of(module: str, name: str) -> bytes:
    """Return what a class or function is called."""
    return f"c{module}\n{name}\n".encode()


def dict_of(items: Mapping[str, bytes]) -> bytes:
    """Return a dict from text to what was pickled before."""
    return b"}" + items_of(items)


def items_of(items: Mapping[str, bytes]) -> bytes:
    """Return pairs that are added to the dict before them."""
    return b"(" + b"".join(text_of(name) + value for name, value in items.items()) + b"u"


def set_of(numbers: Iterable[int]) -> bytes:
    """Return a set of whole numbers."""
    values = b"".join(whole_of(number) for number in sorted(numbers))
    return name_of("__builtin__", "set") + b"(](" + values + b"etR"


def text_of(text: str) -> bytes:
    """Return text."""
    encoded = text.encode("utf-8")
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def whole_of(number: int) -> bytes:
    """Return a whole number."""
    if -(1 << 31) <= number < 1 << 31:
        return b"J" + struct.pack("<i", number)
    encoded = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(encoded)]) + encoded


def float_of(number: float) -> bytes:
    """Return a number with a point."""
    return b"G" + struct.pack(">d", number)
