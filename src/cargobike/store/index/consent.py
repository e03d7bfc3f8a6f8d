"""What a user allows a project to do: to name the database in which its index is kept.

A project may come from elsewhere: as an archive, from a repository, on a shared disk. Its settings could name any file
of the reader's machine, or any database that the reader's passwords open. They count once the reader has said so, for
this project and this address; another address, or a project in another folder, has to be allowed again. What was
allowed is remembered beside the reader's other settings, never in the project.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from cargobike.core import settings
from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder


def is_allowed(project: ProjectFolder, url: str) -> bool:
    """Tell whether this user lets the settings of a project name a database."""
    try:
        lines = _file().read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return _line(project, url) in (line.partition(" ")[0] for line in lines)


def allow(project: ProjectFolder, url: str) -> None:
    """Remember that this user lets the settings of a project name a database.

    Raises:
        StoreError: If it cannot be written down.
    """
    if is_allowed(project, url):
        return
    file = _file()
    # The address may hold a password, and a line must be one line.
    line = f"{_line(project, url)} {str(project.root).encode('unicode_escape').decode('ascii')}\n"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror}. Set {settings.INDEX_URL} to the address instead."
        ) from error


def _file() -> Path:
    return Path(settings.config_folder()) / "allowed-indexes"


def _line(project: ProjectFolder, url: str) -> str:
    root = os.path.realpath(project.root)
    return sha256(os.fsencode(root) + b"\0" + url.encode("utf-8", "surrogateescape")).hexdigest()
