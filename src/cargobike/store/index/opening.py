"""Opening the database of a project's index, of any kind."""

from __future__ import annotations

import contextlib
import os
import secrets
import tomllib
from hashlib import sha256
from typing import TYPE_CHECKING

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.products import load, products

if TYPE_CHECKING:
    from cargobike.store.index.database import Database
    from cargobike.store.index.tables import Tables


def open_database(project: ProjectFolder, tables: Tables) -> Database:
    """Open the database of a project for the tables of a product: the one that it names, or a SQLite file in it.

    The database is named by the variable `CARGOBIKE_INDEX_URL`, or in the project's `settings.toml`. Where a project is
    read-only and nothing is named, the database is in memory. A project that does not exist yet is not created by
    looking at it.

    Raises:
        InvalidInputError: If the name is not one of a database that is supported.
        StoreError: If the database cannot be reached.
    """
    # SQLAlchemy takes a third of a second to import, which a launch does not need.
    from cargobike.store.index.database import Database  # noqa: PLC0415

    url = index_url(project)
    before_sync = _bring_here if project.remote_url.exists() else None
    if not url:
        writable = os.access(project.root, os.W_OK)
        place = f"sqlite:///{project.index}" if writable else "sqlite://"
        return Database(project, tables, place, before_sync=before_sync)
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
    """Return the address of the index's database, empty for the project's own file."""
    if url := settings.index_url():
        return url
    try:
        table = tomllib.loads(project.settings.read_text("utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise StoreError(f"{project.settings} cannot be read: {error}") from error
    url = table.get("index", {}).get("url", "") if isinstance(table.get("index"), dict) else ""
    if not isinstance(url, str):
        raise InvalidInputError(f'{project.settings}: url must be a text, such as "postgresql://host/database".')
    return url


def project_key(project: ProjectFolder) -> str:
    """Return the name of a project in a database that serves several, made when first asked for.

    It lies in the project, so that it is the same from every host and by every path; the
    name of a project on shared storage follows from its address.
    """
    with contextlib.suppress(FileNotFoundError):
        return sha256(project.remote_url.read_bytes().strip()).hexdigest()[:32]
    with contextlib.suppress(FileNotFoundError):
        return project.key.read_text().strip()
    made = project.key.with_name(f".{project.key.name}.{secrets.token_hex(4)}")
    try:
        project.root.mkdir(parents=True, exist_ok=True)
        made.write_text(secrets.token_hex(16) + "\n")
        with contextlib.suppress(FileExistsError):  # another process was quicker
            os.link(made, project.key)
        return project.key.read_text().strip()
    except OSError as error:
        raise StoreError(f"The project {project.root} cannot be given a name: {error.strerror}.") from error
    finally:
        made.unlink(missing_ok=True)
