"""Which store a group is looked up in: read from what users say, and found for a group."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.lazy import in_words, load
from cargobike.core.settings import REDIS_PASSWORD, REDIS_USER
from cargobike.core.values.numbers import describe
from cargobike.features.definition import Definition
from cargobike.features.online.stores.sqlite import SqliteStore
from cargobike.features.online.stores.store import OnlineStore
from cargobike.store.files.shared import copy_of
from cargobike.store.files.storage import Storage
from cargobike.store.history.environment import without_credentials

_SCHEMES: Final = ("redis", "rediss", "unix")
_ALLOWED: Final = "True (SQLite on each host), 'lmdb' (on each host), 'redis://host:6379/0' or 'unix:///path/to/socket'"


def read_online(given: Any) -> tuple[bool, str]:
    """Return whether rows are kept for look-ups, and in which store; empty for the default one.

    Raises:
        InvalidInputError: If it is none that we know, or an address with credentials, which all users would see.
        MissingLibraryError: If the library of the store is not installed.
    """
    if isinstance(given, bool):
        return given, ""
    if not isinstance(given, str):
        raise InvalidInputError(f"online must be {_ALLOWED}; {describe(given)} was given.")
    if given == "sqlite":
        return True, ""
    if given == "lmdb":
        _module("lmdb")
        return True, given
    if "://" not in given:
        close = nearest(given, ["sqlite", "lmdb", "redis"])
        raise InvalidInputError(f"online must be {_ALLOWED}; {given!r} was given.{close}")
    address = _address(given)
    _module("redis")
    return True, address


def store_of(definition: Definition, storage: Storage) -> OnlineStore:
    """Return the store of a group.

    Args:
        definition: The group.
        storage: The storage of its project.

    Raises:
        MissingLibraryError: If the library of the store is not installed.
    """
    if not definition.online_store:
        return SqliteStore(file_of(local_root(storage), definition))
    store: OnlineStore
    if definition.online_store == "lmdb":
        store = _module("lmdb").LmdbStore(file_of(local_root(storage), definition).with_suffix(".lmdb"))
    else:
        module = _module("redis")
        frame = module.frame_of(without_credentials(storage.url), definition.name, definition.version)
        store = module.RedisStore(_address(definition.online_store), frame)
    return store


def _module(kind: str) -> Any:
    """Return the module of a kind of store, whose library may be missing.

    Raises:
        MissingLibraryError: If it is; says how to install it.
    """
    try:
        return load(f"cargobike.features.online.stores.{kind}")
    except ModuleNotFoundError as error:
        raise in_words(error, f"A group that is looked up in {kind}", kind) from error


def is_materialized(definition: Definition, storage: Storage) -> bool:
    """Tell whether look-ups in a group are possible: its rows are on this host, or on its server.

    Raises:
        StoreError: If its server does not answer.
    """
    path = file_of(local_root(storage), definition)
    path = path.with_suffix(".lmdb") if definition.online_store else path
    if "://" not in definition.online_store and not path.exists():
        return False
    with closing(store_of(definition, storage).reader()) as reader:
        return reader.state() is not None


def file_of(root: Path, definition: Definition) -> Path:
    """Return the file for a group; below the local folder of its project, also if that lies on shared storage."""
    return root / "features" / definition.name / f"v{definition.version}" / "online" / "rows.sqlite"


def local_root(storage: Storage) -> Path:
    """Return the folder on this host for a project: where it lies, or where the copy of a shared one does."""
    return copy_of(storage.url) if "://" in storage.url else Path(storage.url)


def _address(given: str) -> str:
    """Return the address of a Redis server.

    Raises:
        InvalidInputError: If it is none, or has credentials; says so without repeating them.
    """
    plain = without_credentials(given).partition("?")[0]
    try:
        parts = urlsplit(given)
        has_credentials = parts.username is not None or parts.password is not None or "@" in parts.netloc
        port, query = parts.port, parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidInputError(f"online={plain!r} cannot be read as an address; it must be {_ALLOWED}.") from None
    mistakes = []
    if parts.scheme not in _SCHEMES:
        mistakes.append(f"it begins with {parts.scheme}://; there are {', '.join(f'{one}://' for one in _SCHEMES)}.")
    if has_credentials or set(query) & {"username", "password"}:
        mistakes.append(
            f"it has credentials, which every user of the project would see; set {REDIS_USER} and {REDIS_PASSWORD} "
            "in the environment instead."
        )
    elif unknown := set(query) - {"db"}:
        mistakes.append(f"it has settings that are not known: {', '.join(sorted(unknown))}; there is only db.")
    if parts.scheme == "unix" and (parts.netloc or not parts.path):
        mistakes.append("it names no socket; write unix:///path/to/socket.")
    if parts.scheme in {"redis", "rediss"} and not parts.hostname:
        mistakes.append("it names no host.")
    database = query.get("db", [""])[0] or (parts.path.strip("/") if parts.scheme != "unix" else "")
    if database and not database.isdecimal():
        mistakes.append(f"{database!r} is no number of a database.")
    if port == 0:
        mistakes.append("there is no port 0.")
    if mistakes:
        raise InvalidInputError(f"online={plain!r} cannot be used:", mistakes)
    return given
