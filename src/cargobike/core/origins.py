"""Where rows come from: a version of something that a project keeps, or files that lie anywhere."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

_DATASET: Final = re.compile(r"(?P<name>[a-z][a-z0-9_]{0,62}):(?P<version>[1-9]\d{0,5})/(?P<part>[a-z][a-z0-9_]{0,30})")


class Origin(NamedTuple):
    """What rows were read from.

    Attributes:
        kind: `table`, `dataset` (a training dataset) or `file` (files that are no table; also a folder or an address).
        name: What it is called, without credentials.
        version: Which version of it, as text; empty for files, unless they are a Delta table.
        part: Which part of a training dataset.
    """

    kind: str
    name: str
    version: str = ""
    part: str = ""

    def __str__(self) -> str:
        return label(self.name, self.version, self.part)


def label(name: str, version: str, part: str) -> str:
    """Return what people write to mean some rows.

    Example:
        >>> label("team_value", "2", "train"), label("rows.csv", "", "")
        ('team_value:2/train', 'rows.csv')
    """
    return name + (f":{version}" if version else "") + (f"/{part}" if part else "")


def read_origin(source: str, version: str) -> Origin | None:
    """Return what was meant by a source that was recorded before its name, version and part were fields.

    Example:
        >>> read_origin("points:3", "3"), read_origin("team_value:2/train", "1").part, read_origin("rows.csv", "")
        (Origin(kind='table', name='points', version='3', part=''), 'train', None)
    """
    if version and source.endswith(f":{version}"):
        return Origin("table", source.removesuffix(f":{version}"), version)
    if version and (match := _DATASET.fullmatch(source)):
        return Origin("dataset", match["name"], match["version"], match["part"])
    return None


def lift(record: msgspec.Struct) -> None:
    """Fill the fields of a record, which was decoded just now, that were all in `source` before it had a `kind`."""
    source, version, kind = (getattr(record, name) for name in ("source", "version", "kind"))
    if not kind and (origin := read_origin(source, version)):
        for name, value in zip(("kind", "source", "version", "part"), origin, strict=True):
            msgspec.structs.force_setattr(record, name, value)
