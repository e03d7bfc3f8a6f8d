"""Values of hyperparameters in a form that JSON and msgpack keep exactly.

Both have lists but no tuples, JSON has neither NaN nor infinities, and its keys are text. What they lack is written as
a dict with one key that begins with `$`: `(64, 64)` becomes `{"$tuple": [64, 64]}`. Everything else stays as it is, so
that what earlier versions wrote is read as it was meant.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any, Final

_MARK: Final = "$"
TUPLE: Final = "$tuple"
_FLOAT: Final = "$float"
_BYTES: Final = "$bytes"
_DICT: Final = "$dict"
_FLOATS: Final = ("nan", "inf", "-inf")


def pack_exactly(value: Any) -> Any:
    """Return a value as JSON and msgpack can hold it.

    Example:
        >>> pack_exactly({"hidden": (64, [1, 2.5]), "name": "a"})
        {'hidden': {'$tuple': [64, [1, 2.5]]}, 'name': 'a'}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: repr(float(value))}
    if isinstance(value, tuple):
        return {TUPLE: [pack_exactly(item) for item in value]}
    if isinstance(value, list):
        return [pack_exactly(item) for item in value]
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith(_MARK) for key in value):
            return {key: pack_exactly(item) for key, item in value.items()}
        return {_DICT: [[pack_exactly(key), pack_exactly(item)] for key, item in value.items()]}
    return value


def unpack_exactly(value: Any) -> Any:
    """Undo `pack_exactly`; what it did not write is returned as it is.

    Example:
        >>> unpack_exactly({"hidden": {"$tuple": [64, 64]}})
        {'hidden': (64, 64)}
    """
    if isinstance(value, list):
        return [unpack_exactly(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(mark, content)] = value.items()
        if (read := _MARKED.get(mark)) is not None:
            try:
                return read(content)
            except (KeyError, TypeError, ValueError):
                pass  # a dict like any other
    return {key: unpack_exactly(item) for key, item in value.items()}


def _tuple(content: Any) -> tuple[Any, ...]:
    if not isinstance(content, list):
        raise TypeError
    return tuple(unpack_exactly(item) for item in content)


def _float(content: Any) -> float:
    if content not in _FLOATS:
        raise ValueError
    return float(content)


def _bytes(content: Any) -> bytes:
    if not isinstance(content, str):
        raise TypeError
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise ValueError from error


def _dict(content: Any) -> dict[Any, Any]:
    if not isinstance(content, list):
        raise TypeError
    return {unpack_exactly(key): unpack_exactly(item) for key, item in content}


_MARKED: Final[dict[Any, Any]] = {TUPLE: _tuple, _FLOAT: _float, _BYTES: _bytes, _DICT: _dict}


def are_alike(left: Any, right: Any) -> bool:
    """Tell whether two values are the same, but for tuples and lists: earlier versions wrote tuples as lists."""
    return bool(_without_tuples(pack_exactly(left)) == _without_tuples(pack_exactly(right)))


def _without_tuples(packed: Any) -> Any:
    if isinstance(packed, list):
        return [_without_tuples(item) for item in packed]
    if isinstance(packed, dict):
        if packed.keys() == {TUPLE}:
            return _without_tuples(packed[TUPLE])
        return {key: _without_tuples(item) for key, item in packed.items()}
    return packed
