"""The columns of a group: its key, its event time, its features, and when each row was written."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.delta.schemas import TIME, type_of


def schema_of(definition: Definition, *, with_written_at: bool = True) -> pa.Schema:
    """Return names and types of all columns, in order; types of the key are `null` until rows have come."""
    kinds = definition.key_types or ("null",) * len(definition.key)
    fields = [pa.field(name, type_of(kind) or pa.null()) for name, kind in zip(definition.key, kinds, strict=True)]
    if definition.event_time:
        fields.append(pa.field(definition.event_time, TIME))
    fields += [pa.field(name, type_of(kind)) for name, kind in definition.features.items()]
    if with_written_at:
        fields.append(pa.field(WRITTEN_AT, TIME))
    return pa.schema(fields)


def identity_of(definition: Definition) -> list[str]:
    """Return the columns of which no two rows have equal values: the key, and the event time if there is one."""
    return [*definition.key, *([definition.event_time] if definition.event_time else [])]


def with_columns(definition: Definition, types: dict[str, Any]) -> Definition:
    """Return a definition that knows the types of more columns; what it knew already stays as it was."""
    features = dict(definition.features)
    for name, kind in types.items():
        if name not in definition.key and name != definition.event_time:
            features.setdefault(name, str(kind))
    key_types = definition.key_types
    if not key_types and all(name in types for name in definition.key):
        key_types = tuple(str(types[name]) for name in definition.key)
    return msgspec.structs.replace(definition, features=features, key_types=key_types)
