"""Opening the index of a project, whichever kind it has."""

from __future__ import annotations

import os

from cargobike.store.index import Index
from cargobike.store.layout import ProjectFolder


def open_index(project: ProjectFolder) -> Index:
    """Open the index of a project: a SQLite file in it, or one in memory where the project is read-only.

    A project that does not exist yet is not created by looking at it.
    """
    # SQLAlchemy costs a third of a second; who only launches experiments never pays it.
    from cargobike.store.sql_index import SqlIndex  # noqa: PLC0415

    writable = os.access(project.root, os.W_OK)
    return SqlIndex(project, f"sqlite:///{project.index}" if writable else "sqlite://")
