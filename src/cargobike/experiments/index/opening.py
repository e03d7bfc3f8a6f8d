"""Opening the index of experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.index import Index
from cargobike.experiments.index.sql import SqlIndex
from cargobike.experiments.index.watched import WatchedExperiments
from cargobike.store.files.project import current
from cargobike.store.index.opening import open_answers

if TYPE_CHECKING:
    from cargobike.store.index.tables import Tables


def open_index(project: ProjectFolder | None = None) -> Index:
    """Open the index of a project, by default the one in use: the database that it names, or a SQLite file in it.

    The database is named by the variable `CARGOBIKE_INDEX_URL`, or in the project's `settings.toml` if the user has
    allowed that (`cargobike doctor --allow-index`). Where a project is read-only and nothing is named, the index is in
    memory. A project that does not exist yet is not created by looking at it.

    Raises:
        InvalidInputError: If the name is not one of a database that is supported.
        StoreError: If the database cannot be reached.
    """
    return SqlIndex(open_answers(current() if project is None else project, WatchedExperiments(), _tables))


def _tables() -> Tables:
    # SQLAlchemy takes a third of a second to import, which a launch does not need, nor a question that is answered
    # without writing.
    from cargobike.experiments.index.journals import TABLES  # noqa: PLC0415

    return TABLES
