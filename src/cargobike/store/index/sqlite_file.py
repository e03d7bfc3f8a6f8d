"""The SQLite file of an index: made with our mark, used only if it carries it, and no file of another program touched.

The mark is SQLite's `application_id`, four bytes in the header of the file. A new file gets it before it gets its name,
so a file without it is not ours, or was made by a Cargobike that did not mark its files; those are known by their
tables.

A process that closes a file loses all locks that it has on it, those of its SQLite connections too. So a file is looked
into once, before the first connection; later on, the connections themselves ask for the mark (`check_mark`).
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cargobike.core.errors import StoreError

MARK: Final = int.from_bytes(b"CgBk", "big")
PRODUCTS: Final = "products"
"""The table that says which version of its tables each product has."""
BEFORE_PRODUCTS: Final = frozenset({"meta", "experiments", "trials"})
"""The tables of a file that was made before there were products."""

_HEADER_BYTES: Final = 100
_MAGIC: Final = b"SQLite format 3\0"
_BESIDE: Final = ("-wal", "-shm", "-journal")

_log = logging.getLogger(__name__)

_known: set[tuple[int, int]] = set()
"""Device and number of the files that this process has found to be ours, and may have connections to."""
_looking = threading.Lock()


class _Owner(Enum):
    OURS = "ours"
    OURS_UNMARKED = "made by a Cargobike that did not mark its files, or holding nothing"
    EMPTY = "an empty file"
    UNREADABLE = "not a database"
    FOREIGN = "the database of another program"


def claim(file: Path, *, is_in_project: bool, is_locked: bool = False) -> None:
    """Make sure that a file is there and is ours, before it is opened to be written to.

    What carries the mark is used, what does not exist is made. At its place in a project (`is_in_project`), a file
    that cannot be read is moved aside: it is damaged. Everything else is left as it is. `is_locked` says that the
    caller has locked the file's folder with `only_one`.

    Raises:
        StoreError: If the file is another program's, or cannot be made.
    """
    if _identity(file) in _known:
        return
    try:
        with contextlib.nullcontext() if is_locked else only_one(file.parent), _looking:
            if _identity(file) in _known:
                return  # another thread was quicker
            _claim_alone(file, is_in_project=is_in_project and not file.is_symlink())
            _known.add(_identity(file))
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"The index {file} cannot be made: {error.strerror or error}.") from error
    except sqlite3.Error as error:
        raise StoreError(f"The index {file} cannot be used: {error}.") from error


def check_mark(connection: sqlite3.Connection) -> None:
    """Make sure that a file carries the mark, before anything is written to it.

    Raises:
        sqlite3.DatabaseError: If it does not: another file was copied over it.
    """
    if connection.execute("PRAGMA application_id").fetchone()[0] != MARK:
        raise sqlite3.DatabaseError("the file has lost our mark")


def discard(file: Path) -> bool:
    """Delete a file that turned out to be damaged, if it is ours; returns whether it was."""
    _known.discard(_identity(file))
    if _owner(file) is not _Owner.OURS:
        return False
    for suffix in ("", *_BESIDE):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    return True


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, so that one process at a time goes on."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # a copy of this process may have it open too
        os.close(fd)


def _identity(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _claim_alone(file: Path, *, is_in_project: bool) -> None:
    owner = _owner(file)
    if owner is _Owner.OURS:
        return  # another process was quicker
    if owner is None:
        _make(file, is_in_project=is_in_project)
    elif owner is _Owner.OURS_UNMARKED:
        with closing(sqlite3.connect(file, timeout=10.0)) as connection:
            _mark(connection)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    elif owner is _Owner.EMPTY and is_in_project:
        file.unlink()
        _make(file, is_in_project=True)
    elif owner is _Owner.UNREADABLE and is_in_project:
        aside = _free_name(file)
        file.rename(aside)
        for suffix in _BESIDE:
            file.with_name(file.name + suffix).unlink(missing_ok=True)
        _log.warning("The index %s is damaged; reading all journals anew. What was there is now %s.", file, aside)
        _make(file, is_in_project=True)
    else:
        raise StoreError(
            f"{file} is not an index of Cargobike but {_what(file, owner)}, and was not touched. Move it elsewhere or, "
            "where you chose it as the index, name a file that does not exist yet."
        )


def _owner(file: Path) -> _Owner | None:
    """Tell whose file it is, without changing anything; `None` if there is none."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return _Owner.FOREIGN if file.is_symlink() else None
    except OSError as error:
        raise StoreError(f"The index {file} cannot be read: {error.strerror}.") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return _Owner.FOREIGN
        header = os.read(fd, _HEADER_BYTES)
    finally:
        os.close(fd)
    if not header:
        return _Owner.EMPTY
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        return _Owner.UNREADABLE
    user_version, application = int.from_bytes(header[60:64], "big"), int.from_bytes(header[68:72], "big")
    if application == MARK:
        return _Owner.OURS
    return _Owner.FOREIGN if application or user_version else _owner_by_tables(file)


def _owner_by_tables(file: Path) -> _Owner:
    # An immutable file is read without locks, and without files beside it being made or used.
    address = f"file:{quote(os.fsencode(file.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables:
                return _Owner.FOREIGN if _has_log(file) else _Owner.OURS_UNMARKED
            if PRODUCTS in tables:
                return _Owner.OURS_UNMARKED if _names_all(connection, tables) else _Owner.FOREIGN
            if "meta" in tables and tables <= BEFORE_PRODUCTS:
                query = "SELECT count(*) FROM meta WHERE name = 'schema_version'"
                return _Owner.OURS_UNMARKED if connection.execute(query).fetchone()[0] else _Owner.FOREIGN
            return _Owner.FOREIGN
    except sqlite3.OperationalError:
        return _Owner.FOREIGN  # tables with our names and other columns
    except sqlite3.DatabaseError:
        return _Owner.UNREADABLE


def _names_all(connection: sqlite3.Connection, tables: set[str]) -> bool:
    """Tell whether every table of a file is one that a product has entered in our list of them."""
    rows = connection.execute(f"SELECT product, version, tables FROM {PRODUCTS}").fetchall()  # noqa: S608
    listed = {name for _, _, names in rows for name in str(names).split()}
    return bool(rows) and tables <= {PRODUCTS, *listed}


def _has_log(file: Path) -> bool:
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size > 0
    except OSError:
        return False


def _make(file: Path, *, is_in_project: bool) -> None:
    """Make a file with our mark under another name, then give it its own, so that it is never seen without."""
    if _has_log(file) and not is_in_project:
        raise StoreError(f"{file} does not exist, but {file.name}-wal beside it does; remove that one.")
    made = file.with_name(f".{file.name[:100]}.{secrets.token_hex(4)}")
    try:
        with closing(sqlite3.connect(made)) as connection:
            _mark(connection)
        for suffix in _BESIDE:  # they belong to a file that was deleted
            file.with_name(file.name + suffix).unlink(missing_ok=True)
        with contextlib.suppress(FileExistsError):
            try:
                os.link(made, file)
            except PermissionError:  # a file system without links
                if not file.exists():
                    made.rename(file)
    finally:
        made.unlink(missing_ok=True)


def _mark(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {MARK}")


def _what(file: Path, owner: _Owner) -> str:
    if file.is_dir():
        return "a folder"
    if file.is_symlink() and not file.exists():
        return "a link to nothing"
    if owner is _Owner.EMPTY:
        return "an empty file"
    if owner is _Owner.FOREIGN:
        return "the database of another program" if file.is_file() else "no regular file"
    return "another file"


def _free_name(file: Path) -> Path:
    number = 1
    while (aside := file.with_name(f"{file.name}.unreadable-{number}")).exists():
        number += 1
    return aside
