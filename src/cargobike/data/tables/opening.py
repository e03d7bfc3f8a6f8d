"""Finds tables by their names, paths and URLs."""

from __future__ import annotations

import os

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.data.tables.addresses import address_of, split_version
from cargobike.data.tables.table import Table
from cargobike.data.tables.versions import find_version


def open(table: str | os.PathLike[str], *, version: int | None = None) -> Table:
    """Return a table that was written: its newest version, or the one asked for.

    Args:
        table: A name of the project, such as `higgs` or `higgs:3`; or a path or URL, with or without a version.
        version: The number of a version, instead of one behind the name.

    Raises:
        NotFoundError: If there is none.

    Example:
        >>> from cargobike import data
        >>> _ = data.write({"x": [1, 2, 3]}, "numbers")
        >>> data.open("numbers").num_rows, data.open("numbers:1").version
        (3, 1)
    """
    return open_in(table, None, version)


def open_in(table: str | os.PathLike[str], project: ProjectFolder | None, version: int | None = None) -> Table:
    """Return a table as `open` does, of any project."""
    place, behind = split_version(table)
    if version is not None and behind is not None and version != behind:
        raise InvalidInputError(f"{table!r} and version={version} were given; give one version.")
    number = version if version is not None else behind
    if number is not None and number < 1:
        raise InvalidInputError(f"version={number} was given; versions are numbered from 1.")
    address = address_of(place, project)
    return Table(address, find_version(address, number))


def is_table(place: str | os.PathLike[str]) -> bool:
    """Tell whether a name, path or URL means a table that was written."""
    try:
        open(place)
    except (NotFoundError, InvalidInputError):
        return False
    return True
