"""Finds tables that a step of a pipeline had written when its process was killed."""

from __future__ import annotations

import os
from typing import Any

from cargobike.core.layout import ProjectFolder
from cargobike.data.tables.addresses import address_of
from cargobike.data.tables.table import Table
from cargobike.data.tables.versions import latest, read_version


def recover_write(token: str, project: ProjectFolder, /, *given: Any, **said: Any) -> Table | None:
    """Return the version that a step wrote with `data.write` or `data.pack`, whose second argument is where."""
    return written_by(token, project, said["url"] if "url" in said else given[1])


def written_by(token: str, project: ProjectFolder, url: str | os.PathLike[str]) -> Table | None:
    """Return the version of a table that a step of a pipeline wrote, the newest of several."""
    address = address_of(url, project)
    for version in range(latest(address.storage), 0, -1):
        manifest = read_version(address.storage, version)
        if manifest is not None and manifest.step == token:
            return Table(address, manifest)
    return None
