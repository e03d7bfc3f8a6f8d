"""Opening the index of experiments."""

from __future__ import annotations

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.index import Index
from cargobike.store.files.project import current
from cargobike.store.index.opening import open_database


def open_index(project: ProjectFolder | None = None) -> Index:
    """Open the index of a project, by default the one in use: the database that it names, or a SQLite file in it.

    The database is named by the variable `CARGOBIKE_INDEX_URL`, or in the project's `settings.toml`. Where a project is
    read-only and nothing is named, the index is in memory. A project that does not exist yet is not created by looking
    at it.

    Raises:
        InvalidInputError: If the name is not one of a database that is supported.
        StoreError: If the database cannot be reached.
    """
    # SQLAlchemy takes a third of a second to import, which a launch does not need.
    from cargobike.experiments.index.journals import TABLES  # noqa: PLC0415
    from cargobike.experiments.index.sql import SqlIndex  # noqa: PLC0415

    return SqlIndex(open_database(current() if project is None else project, TABLES))
