"""What the inference log keeps of requests that were refused after they were read: enough to see what was wrong."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from cargobike.core.values.undecodable import UNDECODABLE

LONGEST: Final = 64 << 10
"""Of longer bodies nothing is kept but that they were refused."""
LONGEST_TEXT: Final = 4 << 10
"""How much is kept of a body that is not JSON."""


def kept_rows(body: bytes, fields: Collection[str], redact: Collection[str]) -> list[Any] | None:
    """Return a refused body as the only row of its request; `None` if nothing of it is kept.

    Where something is redacted, a value is kept only if it lies under the name of a field that is not: of a body that
    was not understood, what has no name may be anything.

    Example:
        >>> kept_rows(b'{"instances": [[7, "secret"], {"age": 7, "town": "secret"}]}', {"age", "town"}, {"town"})
        [{'instances': [[], {'age': 7}]}]
    """
    if len(body) > LONGEST:
        return None
    try:
        plain = msgspec.json.decode(body)
    except UNDECODABLE:
        return None if redact else _text(body)
    if not redact:
        return [plain]
    known = _known(plain, frozenset(fields) - frozenset(redact), frozenset(redact))
    return None if known is _NOTHING else [known]


_NOTHING: Final = object()


def _text(body: bytes) -> list[Any] | None:
    try:
        return [body.decode()[:LONGEST_TEXT]]
    except UnicodeDecodeError:
        return None


def _known(value: Any, names: frozenset[str], redact: frozenset[str], *, is_named: bool = False) -> Any:
    if isinstance(value, dict):
        items = {
            key: _known(item, names, redact, is_named=is_named or key in names)
            for key, item in value.items()
            if key not in redact
        }
        return {key: item for key, item in items.items() if item is not _NOTHING}
    if isinstance(value, list):
        parts = [_known(item, names, redact, is_named=is_named) for item in value]
        return [part for part in parts if part is not _NOTHING]
    return value if is_named else _NOTHING
