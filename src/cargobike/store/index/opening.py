"""Opening the database of a project's index, of any kind."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import secrets
import tomllib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.plain_files import read_plain
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products
from cargobike.store.files.shared import shared_url
from cargobike.store.history.environment import without_credentials
from cargobike.store.index.consent import is_allowed
from cargobike.store.index.light import Answers, LightDatabase
from cargobike.store.index.watched import Watched

if TYPE_CHECKING:
    from cargobike.store.index.database import Database
    from cargobike.store.index.tables import Tables


_LONGEST_SQLITE_PATH = 480  # SQLite opens no longer ones, and has files with longer names beside its own

_log = logging.getLogger(__name__)


def open_database(project: ProjectFolder, tables: Tables) -> Database:
    """Open the database of a project for the tables of a product: the one that it names, or a SQLite file in it.

    The database is named by the variable `CARGOBIKE_INDEX_URL`, or in the project's `settings.toml` if the user has
    allowed that. Where a project is read-only or its path too long, and nothing is named, the database is in memory. A
    project that does not exist yet is not created by looking at it.

    Raises:
        InvalidInputError: If the name is not one of a database that is supported.
        StoreError: If the database cannot be reached.
    """
    # SQLAlchemy takes a third of a second to import, which a launch does not need.
    from cargobike.store.index.database import Database, sqlite_url  # noqa: PLC0415

    url = index_url(project)
    before_sync = _bring_here if shared_url(project) else None
    if not url:
        place = project.index if _has_file(project) else None
        return Database(project, tables, sqlite_url(place), before_sync=before_sync)
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme in {"postgresql", "postgres"}:
        from cargobike.store.index.postgres import PostgresDatabase  # noqa: PLC0415

        return PostgresDatabase(project, tables, url, key=project_key(project), before_sync=before_sync)
    if scheme == "sqlite":
        return Database(project, tables, url, before_sync=before_sync)
    raise InvalidInputError(
        f"An index cannot be kept in {scheme!r}. {settings.INDEX_URL} may be postgresql://user@host/database "
        "or sqlite:////path."
    )


def open_answers(project: ProjectFolder, watched: Watched, tables: Callable[[], Tables]) -> Answers:
    """Open the database of a project as `open_database` does, and load what it needs to be written to only when it is.

    Args:
        project: The project.
        watched: What to watch of a product.
        tables: Loads its tables.
    """
    if shared_url(project) or index_url(project) or not _has_file(project):
        return open_database(project, tables())
    return LightDatabase(project, watched, project.index, lambda: open_database(project, tables()))


def _has_file(project: ProjectFolder) -> bool:
    """Tell whether a project can have its index in a file: it may be read-only, or its path too long."""
    return len(os.fsencode(project.index)) <= _LONGEST_SQLITE_PATH and os.access(project.root, os.W_OK)


def rebuild_all(project: ProjectFolder) -> None:
    """Make the tables of all products anew from their journals."""
    for product in products():
        if product.tables:
            with open_database(project, load(product.tables)) as database:
                database.rebuild()


def _bring_here(project: ProjectFolder) -> None:
    from cargobike.store.files.mirror import refresh  # noqa: PLC0415 - only for shared storage

    refresh(project)


def index_url(project: ProjectFolder) -> str:
    """Return the address of the index's database, empty for the project's own file.

    What the project's settings name counts only if this user has allowed it (`consent.py`).
    """
    if url := settings.index_url():
        return url
    url = url_in_settings(project)
    if url and not is_allowed(project, url):
        _warn_of(project.settings, without_credentials(url))
        return ""
    return url


def url_in_settings(project: ProjectFolder) -> str:
    """Return the address that the settings of a project name, allowed or not; empty if they name none."""
    try:
        table = tomllib.loads(read_plain(project.settings).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{project.settings} cannot be read: {error}") from error
    url = table.get("index", {}).get("url", "") if isinstance(table.get("index"), dict) else ""
    if not isinstance(url, str):
        raise InvalidInputError(f'{project.settings}: url must be a text, such as "postgresql://host/database".')
    return url.strip()


@functools.cache
def _warn_of(file: Path, url: str) -> None:
    """Say once that an address is not used."""
    _log.warning(
        "%s names %s as the index, which you have not allowed; the project's own index is used. If you trust it: "
        "cargobike doctor --allow-index",
        file,
        url,
    )


def project_key(project: ProjectFolder) -> str:
    """Return the name of a project in a database that serves several, made when first asked for.

    It lies in the project, so that it is the same from every host and by every path; the
    name of a project on shared storage follows from its address.
    """
    if url := shared_url(project):
        return sha256(url.encode()).hexdigest()[:32]
    with contextlib.suppress(FileNotFoundError):
        return read_plain(project.key).decode("ascii", "replace").strip()[:40]
    made = project.key.with_name(f".{project.key.name}.{secrets.token_hex(4)}")
    try:
        project.root.mkdir(parents=True, exist_ok=True)
        made.write_text(secrets.token_hex(16) + "\n")
        with contextlib.suppress(FileExistsError):  # another process was quicker
            os.link(made, project.key)
        return read_plain(project.key).decode("ascii", "replace").strip()[:40]
    except OSError as error:
        raise StoreError(f"The project {project.root} cannot be given a name: {error.strerror}.") from error
    finally:
        made.unlink(missing_ok=True)
