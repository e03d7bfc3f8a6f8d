"""The newest row of each key of a group, and what changed between two commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from cargobike.features.definition import Definition


@dataclass(frozen=True, slots=True)
class Changed:
    """What changed between two commits: rows that came, and keys of which rows went."""

    came: ds.Dataset
    went: ds.Dataset | None


def changed_between(old: ds.Dataset, new: ds.Dataset) -> Changed | None:
    """Return what changed between two states of a group, told by their files; `None` if that cannot be told."""
    if not isinstance(old, ds.FileSystemDataset) or not isinstance(new, ds.FileSystemDataset):
        return None
    before, after = set(old.files), set(new.files)
    went = _only(old, before - after) if before - after else None
    return Changed(_only(new, after - before), went)


def latest_rows(
    rows: ds.Dataset,
    definition: Definition,
    until_us: int,
    of: list[ds.Dataset] | None = None,
    sample: int | None = None,
) -> pa.Table:
    """Return the newest row of each key, ordered by key.

    Args:
        rows: The rows of the group.
        definition: The group.
        until_us: Rows that become true later do not count, in microseconds since 1970.
        of: Only keys that occur in one of these.
        sample: Only so many keys, drawn at random.
    """
    keys = ", ".join(_quoted(name) for name in definition.key)
    names = [*definition.key, *([definition.event_time] if definition.event_time else []), *definition.features]
    chosen = ", ".join(f"r.{_quoted(name)}" for name in names)
    conditions = [f"({keys}) IN (SELECT {keys} FROM wanted)"] if of is not None or sample is not None else []
    text = f"SELECT {chosen} FROM rows r"
    if definition.event_time:
        time = _quoted(definition.event_time)
        conditions.append(f"{time} <= make_timestamptz({until_us})")
        newest = f"SELECT {keys}, max({time}) AS {time} FROM rows WHERE {' AND '.join(conditions)} GROUP BY {keys}"
        text += f" SEMI JOIN ({newest}) n USING ({keys}, {time})"
    elif conditions:
        text += f" WHERE {conditions[0]}"
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": False}) as connection:
        connection.register("rows", rows)
        if of is not None:
            for number, each in enumerate(of):
                connection.register(f"of{number}", each)
            union = " UNION ".join(f"SELECT DISTINCT {keys} FROM of{number}" for number in range(len(of)))
            connection.execute(f"CREATE TEMP TABLE wanted AS {union}")
        elif sample is not None:
            some = f"SELECT * FROM (SELECT DISTINCT {keys} FROM rows) USING SAMPLE {sample} ROWS"
            connection.execute(f"CREATE TEMP TABLE wanted AS {some}")
        found = connection.sql(f"{text} ORDER BY {keys}").to_arrow_table()
    return found.cast(pa.schema([rows.schema.field(name) for name in names]))


def next_due(rows: ds.Dataset, definition: Definition, until_us: int) -> int | None:
    """Return when the next row becomes true that is not yet, in microseconds since 1970."""
    if not definition.event_time:
        return None
    later = pc.field(definition.event_time) > pa.scalar(until_us, pa.timestamp("us", "UTC"))
    if isinstance(rows, ds.FileSystemDataset) and next(rows.get_fragments(filter=later), None) is None:
        return None  # what is known of the times in each file says so: as a rule there is nothing to read
    time = _quoted(definition.event_time)
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": False}) as connection:
        connection.register("rows", rows)
        text = f"SELECT epoch_us(min({time})) FROM rows WHERE {time} > make_timestamptz({until_us})"
        found: Any = connection.sql(text).fetchall()[0][0]
    return None if found is None else int(found)


def keys_in(rows: ds.Dataset, definition: Definition) -> pa.Table:
    """Return the keys that occur in rows, each once."""
    keys = ", ".join(_quoted(name) for name in definition.key)
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": False}) as connection:
        connection.register("rows", rows)
        found = connection.sql(f"SELECT DISTINCT {keys} FROM rows").to_arrow_table()
    return found.cast(pa.schema([rows.schema.field(name) for name in definition.key]))


def _only(rows: ds.FileSystemDataset, paths: set[str]) -> ds.Dataset:
    fragments = [fragment for fragment in rows.get_fragments() if fragment.path in paths]
    if not fragments:
        return ds.dataset(rows.schema.empty_table())
    return ds.FileSystemDataset(fragments, rows.schema, rows.format, rows.filesystem)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
