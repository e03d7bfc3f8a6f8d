"""Where a project keeps what it shares: its key, and for each network the catalogue and what is being transferred.

All of it stays on this host: nothing here is part of what a project on shared storage uploads.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?")


def check_network(name: str) -> str:
    """Return the name of a network.

    Raises:
        InvalidInputError: If it can be none.
    """
    if not _NAME.fullmatch(name) or ".." in name:
        raise InvalidInputError(
            f"The network {name!r} was given; its name has 1 to 64 lower-case letters, digits, '-', '_' and '.', and "
            f"begins and ends with a letter or digit, such as 'lab'."
        )
    return name


def sharing_folder(project: ProjectFolder) -> Path:
    """Return the folder of everything that sharing keeps in a project; made with mode 700."""
    return _private(project.root / "sharing")


def identity_folder(project: ProjectFolder) -> Path:
    """Return the folder of the key that this project publishes with."""
    return _private(sharing_folder(project) / "identity")


def network_folder(project: ProjectFolder, network: str) -> Path:
    """Return the folder of what a project knows of one network."""
    return _private(_private(sharing_folder(project) / "networks") / check_network(network))


def catalogue_file(project: ProjectFolder, network: str) -> Path:
    """Return the SQLite file of a network's catalogue."""
    return network_folder(project, network) / "catalogue.sqlite"


def known_networks(project: ProjectFolder) -> list[str]:
    """Return the networks that a project has anything of, sorted; makes nothing."""
    folder = project.root / "sharing" / "networks"
    return sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
