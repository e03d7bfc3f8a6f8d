"""Groups in plain data: what commands, pages and the API tell about them, written once."""

from __future__ import annotations

from typing import Any

from cargobike.features.groups.commits import commit_of
from cargobike.features.groups.group import Group
from cargobike.features.groups.rows.expecting import words_of
from cargobike.store.history.environment import without_credentials


def listed(group: Group) -> dict[str, Any]:
    """Return what a list tells about a group; only the newest part of its log is read."""
    definition, snapshot = group.definition, group.log.newest()
    newest = commit_of(snapshot.version, group.log.actions(snapshot.version)) if snapshot.version >= 0 else None
    return {
        "name": definition.name,
        "version": definition.version,
        "key": list(definition.key),
        "event_time": definition.event_time,
        "features": dict(definition.features),
        "rows": snapshot.rows,
        "commit": snapshot.version,
        "updated_at": None if newest is None else newest.time.isoformat(timespec="milliseconds"),
        "online": definition.online,
        "online_store": definition.online_store or "sqlite" if definition.online else "",
        "description": definition.description,
        "tags": list(definition.tags),
        "owner": definition.owner,
    }


def described(group: Group) -> dict[str, Any]:
    """Return everything about a group but its rows and statistics."""
    definition = group.definition
    roles = dict.fromkeys(definition.key, "key")
    roles[definition.event_time] = "event time"
    snapshot = group.log.newest()
    return {
        **listed(group),
        "url": without_credentials(group.url),
        "ttl_s": definition.ttl_s,
        "allow_future": definition.allow_future,
        "expectations": [words_of(one) for one in definition.expectations],
        "columns": [
            {"name": field.name, "type": str(field.type), "role": roles.get(field.name, "feature")}
            for field in group.schema
        ],
        "files": len(snapshot.files),
        "size_bytes": sum(file.size for file in snapshot.files.values()),
        "commits": [commit.as_json() for commit in group.history()],
    }
