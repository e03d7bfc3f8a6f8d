"""Paths in a project as Hopsworks's users write them: relative, or below `/Projects/<name>`."""

from __future__ import annotations

import os
from pathlib import Path

from cargobike.compat.hops.translating.files import ProjectFiles, project_name
from cargobike.core.errors import InvalidInputError
from cargobike.store.files.storage import Storage

__all__ = ["inner_path", "project_name", "project_url", "read_text", "storage"]


def project_url() -> str:
    """Return where the project lies: a folder, or the address of shared storage."""
    files = ProjectFiles()
    return os.path.abspath(files.root) if files.is_local else files.root


def storage() -> Storage:
    """Return the storage of the project."""
    return ProjectFiles().storage


def inner_path(path: str | os.PathLike[str]) -> str:
    """Return a path in the project, without a slash in front.

    Raises:
        StoreError: If it leads out of the project.
    """
    return ProjectFiles().inner(path)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file of this machine or of the project.

    Raises:
        InvalidInputError: If there is none.
    """
    here = Path(path)
    if here.is_file():
        return here.read_text(encoding="utf-8")
    data = storage().read(inner_path(path))
    if data is None:
        raise InvalidInputError(f"There is no file {os.fspath(path)!r}, neither here nor in the project.")
    return data.decode("utf-8")
