"""What a feature group is: its key, its times, its features."""

from __future__ import annotations

import msgspec

WRITTEN_AT = "_written_at"
"""The column, kept in every group beside the user's own, that says when a row was written: UTC, microseconds."""


class Expectation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must be true of rows before they are written.

    Attributes:
        kind: `not_null`, `between`, `one_of`, `unique` or `fresh`.
        column: The column that it is about; empty for `fresh`, which is about event times.
        low: The least value that is allowed.
        high: The greatest.
        values: All values that are allowed.
        max_age_s: How old the newest row may be.
    """

    kind: str
    column: str = ""
    low: float | None = None
    high: float | None = None
    values: tuple[str | int | float | bool, ...] = ()
    max_age_s: float | None = None


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What a user said about a group; a change makes a new version.

    Attributes:
        name: Its name in the project, which is also its folder: lower case, digits, `_`.
        version: Counted from 1.
        key: The columns that say what a row is about, such as `("team_id",)`.
        event_time: The column that says since when a row is true; empty if rows have no time.
        features: Types of all other columns by name, in order, as Arrow writes them, such as `double`.
        ttl_s: How long a row stays true after its event time; `None` for ever.
        online: Whether its newest rows are kept for look-ups.
        online_store: Where: empty for SQLite on each host, `lmdb`, or the address of a Redis server, which never has
            credentials.
        description: What it holds, for people.
        tags: Words to find it by.
        owner: Who answers for it.
        key_types: Types of the key columns, in their order; empty until the first rows have come.
        expectations: What must be true of rows before they are written.
        allow_future: Whether event times may lie in the future, as those of forecasts do.
        revision: Counted from 1: what may change within a version (new features, words for people) makes a new one.
    """

    name: str
    version: int = 1
    key: tuple[str, ...]
    event_time: str = ""
    features: dict[str, str] = {}
    ttl_s: float | None = None
    online: bool = False
    online_store: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    key_types: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    allow_future: bool = False
    revision: int = 1
