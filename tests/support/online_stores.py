"""Every store for look-ups, by name: SQLite and LMDB in a folder of the test, Redis on the server of the run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike.features.online.stores.lmdb import LmdbStore
from cargobike.features.online.stores.redis import RedisStore
from cargobike.features.online.stores.sqlite import SqliteStore
from cargobike.features.online.stores.store import OnlineStore
from support.redis_server import RedisServer

KINDS = ("sqlite", "lmdb", "redis")
MakeStore = Callable[[str], OnlineStore]


def make_stores(kind: str, folder: Path, request: pytest.FixtureRequest) -> MakeStore:
    """Return what gives the store of a group by its name, the same one each time."""
    run = secrets.token_hex(4)
    if kind == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        return lambda name: RedisStore(server.url, f"{run}:{name}")
    if kind == "lmdb":
        return lambda name: LmdbStore(folder / "online" / f"{name}.lmdb")
    return lambda name: SqliteStore(folder / "online" / f"{name}.sqlite")
