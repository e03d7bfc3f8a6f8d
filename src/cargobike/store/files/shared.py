"""Which shared storage a folder is the local copy of.

A file in the folder names it. It counts only in the place where this user's copies lie: a project that came from
elsewhere, as an archive or on a shared disk, cannot make its reader use an address that it brought along.
"""

from __future__ import annotations

import functools
import logging
import os
from pathlib import Path

from cargobike.core import settings
from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.plain_files import read_plain

_log = logging.getLogger(__name__)


def copy_of(url: str) -> Path:
    """Return the folder on this host that a project on shared storage is written to first, and read from."""
    from hashlib import sha256  # noqa: PLC0415 - only for shared storage

    name = sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:20]
    return Path(settings.cache_folder()) / "projects" / name


def shared_url(project: ProjectFolder) -> str:
    """Return the address of the storage that a folder is the local copy of, empty for a project that lies in it.

    Raises:
        StoreError: If the folder names a storage that cannot be understood.
    """
    try:
        url = read_plain(project.remote_url).decode("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{project.remote_url} does not hold the address of a project: {error}") from error
    if is_copy(project.root, url):
        return url
    _warn_of(project.root, url)
    return ""


def is_copy(root: Path, url: str) -> bool:
    """Tell whether a folder is the one that this user's copy of a storage lies in."""
    place = copy_of(url)
    if root == place:
        return True
    try:
        return os.path.samefile(root, place)
    except OSError:
        return False


@functools.cache
def _warn_of(root: Path, url: str) -> None:
    """Say once that an address is not used."""
    _log.warning(
        "%s says that it is a copy of %s, but does not lie where copies do (%s); only what is in it is used. "
        "To use the storage, name it: --project URL or %s.",
        root,
        url,
        copy_of(url).parent,
        settings.PROJECT,
    )
