"""Changes inputs: valid examples by their structure, and anything by its bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

Form = Literal["json", "msgpack", "text", "bytes"]

DEEP, HUGE, BROKEN = "@deep@", "@huge@", "@text@"
"""Stand for what no encoder writes: endless nesting, a number of thousands of digits, text that is not UTF-8."""
LONG = "@long@"

ODD_NUMBERS = (
    0, -1, 1, 2, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**30, -(10**400), 0.0, -0.0, 0.5,
    1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
ODD_TEXTS = (
    "", "\x00", "\ud800", "\udcff", "\u202e", "\U0001f6b2", "é" * 300, "..", "../../x", "/etc/passwd", "nan", "inf",
    "-inf", "NaN", "1e999", "٣", "²", "0x10", "null", "true", "CON", "a\nb", "a,b", "'; DROP TABLE trials;--", "%s%n",
    "{}", "[]", "*", "(a+)+$", "2026-99-99", "s3://", "file:///", "postgresql://", "sqlite://", BROKEN, DEEP, HUGE,
    LONG,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (None, True, False, *ODD_NUMBERS, *ODD_TEXTS, [], {}, [[]], {"": None}, [None] * 20)
ODD_BYTES = (
    b"\x00", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xfe\xff", b"\xef\xbb\xbf", b"\r\n",
    b"\n\n", b'"', b"\\", b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"null", b"NaN", b"1e999", b"-",
    b"=", b"&", b"%", b"%00", b"%ff", b"?", b"#", b"/", b"..", b"\xc1", b"\xdd\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xd9\xff", b"\xc7\x08\xff", b"\xcf" + b"\xff" * 8,
    b"\xd3\x80" + b"\x00" * 7,
    b"\xcb\x7f\xf8" + b"\x00" * 6,
)  # fmt: skip
DEPTHS = (40, 600, 3000, 100_000)


class Mutator:
    """Changes inputs at random, the same ones for the same generator."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def mutate(self, data: bytes, form: Form, others: Sequence[bytes]) -> bytes:
        """Return a changed input.

        Args:
            data: The input.
            form: What it is made of.
            others: Further inputs of this kind, to take parts from.
        """
        if form in ("json", "msgpack") and self._rng.random() < 0.75:
            try:
                return self._change_structure(data, form, self._rng.choice(others))
            except (ValueError, RecursionError, msgspec.MsgspecError, OverflowError):
                pass  # it has none any more
        for _ in range(self._rng.choice((1, 1, 2, 4))):
            data = self._rng.choice(_BYTE_CHANGES)(self._rng, data, self._rng.choice(others))
        return data

    def _change_structure(self, data: bytes, form: Form, other: bytes) -> bytes:
        tree, donor = _decode(data, form), _decode(other, form)
        for _ in range(self._rng.choice((1, 1, 1, 2, 3))):
            tree = self._change(tree, donor)
        return _fill_in(_encode(tree, form), form, self._rng)

    def _change(self, tree: Any, donor: Any) -> Any:
        places = [(parent, key) for parent, key in _places(tree)]
        if not places or self._rng.random() < 0.03:
            return self._instead_of(tree, donor)
        parent, key = self._rng.choice(places)
        action = self._rng.random()
        if action < 0.1:
            del parent[key]
        elif action < 0.15 and isinstance(parent, list):
            parent.insert(key, parent[key])
        elif action < 0.2 and isinstance(parent, dict):
            parent[self._rng.choice(ODD_TEXTS)] = parent.pop(key)
        elif action < 0.25 and isinstance(parent, list):
            parent[key:key] = [self._rng.choice(ODD_NUMBERS + ODD_TEXTS)] * self._rng.choice((1, 2, 40))
        else:
            parent[key] = self._instead_of(parent[key], donor)
        return tree

    def _instead_of(self, value: Any, donor: Any) -> Any:
        """Return another value: an odd one, the same in another type, or a part of another input."""
        action = self._rng.random()
        if action < 0.55:
            return _copied(self._rng.choice(ODD_VALUES))
        if action < 0.7:
            parts = [parent[key] for parent, key in _places(donor)]
            return _copied(self._rng.choice(parts)) if parts else donor
        if action < 0.8 and isinstance(value, int | float):
            return value * self._rng.choice((-1, 0, 2, 10, 1e300, 0.1)) if value == value else 0
        if action < 0.8 and isinstance(value, str):
            return value + self._rng.choice(ODD_TEXTS)
        return self._rng.choice((lambda: [value], lambda: {"x": value}, lambda: str(value)[:200], lambda: None))()


def _copied(value: Any) -> Any:
    """Return a value that shares nothing with its origin: a tree must stay a tree."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a tree, as a container and a key in it."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict | list):
            for key in list(node) if isinstance(node, dict) else range(min(len(node), 50)):
                yield node, key
                left.append(node[key])


def _decode(data: bytes, form: Form) -> Any:
    return json.loads(data.decode("utf-8", "surrogatepass")) if form == "json" else msgspec.msgpack.decode(data)


def _encode(tree: Any, form: Form) -> bytes:
    if form == "json":
        return json.dumps(tree, separators=(",", ":")).encode()
    try:
        return msgspec.msgpack.encode(tree)
    except (OverflowError, UnicodeEncodeError):
        return msgspec.msgpack.encode(_packable(tree))


def _packable(value: Any) -> Any:
    """Replace what msgpack has no form for."""
    if isinstance(value, dict):
        return {_packable(key): _packable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_packable(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return 2**64 - 1
    return BROKEN if isinstance(value, str) and not value.isprintable() else value


def _fill_in(data: bytes, form: Form, rng: random.Random) -> bytes:
    """Put what no encoder writes where its marks stand."""
    if b"@" not in data:
        return data
    depth = rng.choice(DEPTHS)
    if form == "json":
        deep = b"[" * depth + b"]" * depth if rng.random() < 0.7 else b'{"a":' * depth + b"1" + b"}" * depth
        broken = rng.choice((b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\xff"', b'"\\u0000"'))
        huge, long = b"9" * rng.choice((400, 5000)), b'"' + b"a" * 70_000 + b'"'
        fillings = {b'"@deep@"': deep, b'"@huge@"': huge, b'"@text@"': broken, b'"@long@"': long}
    else:
        deep = b"\x91" * depth + b"\xc0" if rng.random() < 0.7 else b"\x81\xa1a" * depth + b"\xc0"
        broken = rng.choice((b"\xa2\xc0\x80", b"\xa3\xed\xa0\x80", b"\xa1\xff", b"\xa1\x00"))
        huge, long = b"\xcf" + b"\xff" * 8, b"\xdb\x00\x01\x00\x00" + b"a" * 65_536
        fillings = {b"\xa6@deep@": deep, b"\xa6@huge@": huge, b"\xa6@text@": broken, b"\xa6@long@": long}
    for mark, filling in fillings.items():
        data = data.replace(mark, filling)
    return data


# -- by bytes --------------------------------------------------------------------------------------------------------

ByteChange = Callable[[random.Random, bytes, bytes], bytes]


def _flip(rng: random.Random, data: bytes, _: bytes) -> bytes:
    if not data:
        return b"\x00"
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _truncate(rng: random.Random, data: bytes, _: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def _cut_out(rng: random.Random, data: bytes, _: bytes) -> bytes:
    start, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    return data[:start] + data[end:]


def _repeat(rng: random.Random, data: bytes, _: bytes) -> bytes:
    start = rng.randint(0, len(data))
    part = data[start : start + rng.randint(1, 60)]
    return data[:start] + part * rng.choice((2, 3, 50)) + data[start:]


def _insert(rng: random.Random, data: bytes, _: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(ODD_BYTES) * rng.choice((1, 1, 1, 3, 100)) + data[at:]


def _overwrite(rng: random.Random, data: bytes, _: bytes) -> bytes:
    at, odd = rng.randint(0, len(data)), rng.choice(ODD_BYTES)
    return data[:at] + odd + data[at + len(odd) :]


def _splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _noise(rng: random.Random, data: bytes, _: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 20)) + data[at:]


_BYTE_CHANGES: tuple[ByteChange, ...] = (
    _flip, _flip, _truncate, _cut_out, _repeat, _insert, _insert, _overwrite, _splice, _noise,
)  # fmt: skip
