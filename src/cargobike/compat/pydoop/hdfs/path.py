"""`pydoop.hdfs.path` over the project's files."""

from __future__ import annotations

import posixpath

from cargobike.compat.hops import hdfs as hops
from cargobike.compat.hops.translating.files import ProjectFiles

__all__ = ["abspath", "basename", "dirname", "exists", "getsize", "isdir", "isfile", "join"]

basename = posixpath.basename
dirname = posixpath.dirname
join = posixpath.join


def abspath(hdfs_path: str, user: str | None = None, local: bool = False) -> str:
    """Return the full path, whether something is there or not."""
    files = ProjectFiles()
    return files.full(files.inner(hdfs_path))


def exists(hdfs_path: str, user: str | None = None) -> bool:
    """Tell whether there is a file or folder."""
    return hops.exists(hdfs_path)


def isdir(hdfs_path: str, user: str | None = None) -> bool:
    """Tell whether there is a folder."""
    return hops.isdir(hdfs_path)


def isfile(hdfs_path: str, user: str | None = None) -> bool:
    """Tell whether there is a file."""
    return hops.isfile(hdfs_path)


def getsize(hdfs_path: str, user: str | None = None) -> int:
    """Return how many bytes a file has, or all files in a folder."""
    files = ProjectFiles()
    item = files.find(hdfs_path)
    return sum(entry.size for entry in files.files(item.path)) if item.is_folder else item.size
