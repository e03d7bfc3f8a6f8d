"""What a manifest says about rows: how many, which columns, and a few of them."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.sharing.checks import MOST_SAMPLE_BYTES
from cargobike.sharing.publishing.content import Content
from cargobike.sharing.records import Column

_LONGEST: Final = 200
_MOST_COLUMNS: Final = 5000
_MOST_VALUES: Final = 20


class Rows(NamedTuple):
    """What is said about rows."""

    rows: int | None = None
    columns: tuple[Column, ...] = ()
    sample: tuple[dict[str, Any], ...] = ()
    problem: str = ""


def describe_rows(content: Content, *, sample_rows: int, redact: Sequence[str]) -> Rows:
    """Return what is known of the rows of some content; nothing if it has none that can be read.

    Args:
        content: What is to be published.
        sample_rows: How many rows are shown to others; none at all for 0.
        redact: Columns whose values are left out of them.
    """
    if content.rows is None:
        return Rows()
    try:
        with contextlib.closing(content.rows()) as source:
            schema = source.schema
            columns = tuple(Column(name=field.name[:200], type=str(field.type)[:200]) for field in schema)
            first = source.read(0).slice(0, sample_rows).to_pylist() if sample_rows and len(source.groups) else []
            rows = source.num_rows if content.num_rows is None else content.num_rows
    except (CargobikeError, ImportError, OSError, ValueError) as error:
        return Rows(problem=f"Its rows could not be read, and are not described: {error}")
    shown = [{name: _plain(value) for name, value in row.items() if name not in redact} for row in first]
    while shown and len(msgspec.json.encode(shown)) > MOST_SAMPLE_BYTES // 2:
        shown.pop()
    return Rows(rows, columns[:_MOST_COLUMNS], tuple(shown))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: short, and the same after it was read again."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key)[:_LONGEST]: _plain(item) for key, item in list(value.items())[:_MOST_VALUES]}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value[:_MOST_VALUES]]
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
