"""Feature groups whose rows are in memory, one table for each commit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.joining.spine import TIME
from support.histories import SECOND, moments


class MemoryGroup:
    table_id = ""

    def __init__(self, definition: Definition, *commits: pa.Table) -> None:
        self.definition = definition
        self.name = definition.name
        self.commits = list(commits)

    @property
    def commit(self) -> int:
        return len(self.commits) - 1

    def dataset(self, commit: int | None = None) -> ds.Dataset:
        return ds.dataset(self.commits[-1 if commit is None else commit])


def memory_group(
    name: str,
    key: str,
    columns: dict[str, list[object]],
    at: list[int | None] | None = None,
    ttl_s: float | None = None,
) -> MemoryGroup:
    """Make a group; rows are written when they become true."""
    keys = key.split()
    features = {each: str(pa.array(values).type) for each, values in columns.items() if each not in keys}
    table = pa.table(columns)
    if at is not None:
        table = table.append_column("at", moments(at))
    written = pa.repeat(pa.scalar(0, TIME), len(table)) if at is None else moments(at)
    definition = Definition(
        name=name, key=tuple(keys), event_time="" if at is None else "at", features=features, ttl_s=ttl_s
    )
    return MemoryGroup(definition, table.append_column(WRITTEN_AT, written))


__all__ = ["SECOND", "MemoryGroup", "memory_group"]
