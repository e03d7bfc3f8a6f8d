"""`pydoop.hdfs` over the project's files: the part that scripts for hops use.

Paths are those of `hops.hdfs`; relative ones begin at the project.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from cargobike.compat.hops import hdfs as hops
from cargobike.compat.hops.translating.files import MissingPathError, ProjectFiles
from cargobike.compat.hops.translating.handle import Handle
from cargobike.compat.pydoop.hdfs import path

__all__ = [
    "cp",
    "dump",
    "get",
    "hdfs",
    "load",
    "ls",
    "lsl",
    "mkdir",
    "move",
    "mv",
    "open",
    "path",
    "put",
    "rename",
    "rm",
    "rmr",
    "stat",
]


def hdfs(host: str = "default", port: int = 0, user: str | None = None, groups: object = None) -> Handle:
    """Return the project's files as a file system of pydoop's; there is no server to choose."""
    return Handle(ProjectFiles())


def open(hdfs_path: str, mode: str = "r", *args: object, **kwargs: object) -> IO[Any]:
    """Open a file: `r`, `w` or `a`, with a `t` for text. What is written appears when the file is closed."""
    return Handle(ProjectFiles()).open_file(hdfs_path, mode)


def ls(hdfs_path: str, user: str | None = None, recursive: bool = False) -> list[str]:
    """Return the full paths of what is in a folder."""
    return hops.ls(hdfs_path, recursive)


def lsl(hdfs_path: str, user: str | None = None, recursive: bool = False) -> list[dict[str, Any]]:
    """Return what is in a folder, of each a dict."""
    return hops.lsl(hdfs_path, recursive)


def load(hdfs_path: str, **kwargs: object) -> bytes:
    """Return the bytes of a file."""
    return hops.load(hdfs_path)


def dump(data: str | bytes, hdfs_path: str, **kwargs: object) -> int:
    """Write a file whole, and return how many bytes it has."""
    return hops.dump(data, hdfs_path)


def mkdir(hdfs_path: str, user: str | None = None) -> None:
    """Make a folder, and those above it."""
    hops.mkdir(hdfs_path)


def rmr(hdfs_path: str, user: str | None = None) -> None:
    """Delete a file, or a folder with everything in it."""
    hops.rmr(hdfs_path)


def rm(hdfs_path: str, recursive: bool = True, user: str | None = None) -> None:
    """Delete a file or a folder."""
    hops.delete(hdfs_path, recursive)


def cp(src_hdfs_path: str, dest_hdfs_path: str, **kwargs: object) -> None:
    """Copy a file or folder."""
    hops.cp(src_hdfs_path, dest_hdfs_path)


def move(src: str, dest: str, user: str | None = None) -> None:
    """Move a file or folder."""
    hops.move(src, dest)


mv = rename = move


def put(src_path: str, dest_hdfs_path: str, **kwargs: object) -> None:
    """Copy a local file or folder to a path of the project, or into a folder that is there.

    Raises:
        MissingPathError: If there is no such local file.
    """
    files, source = ProjectFiles(), Path(src_path).absolute()
    if not source.exists():
        raise MissingPathError(f"There is no local file or folder {src_path!r}.")
    target = files.inner(dest_hdfs_path)
    item = files.look(target)
    is_folder = item is not None and item.is_folder
    files.upload(source, "/".join(filter(None, [target, source.name if is_folder else ""])))


def get(src_hdfs_path: str, dest_path: str, **kwargs: object) -> None:
    """Copy a file or folder of the project to a local path, or into a local folder that is there."""
    files, target = ProjectFiles(), Path(dest_path).absolute()
    item = files.find(src_hdfs_path)
    files.download(item, target / item.path.rpartition("/")[2] if target.is_dir() else target)


def stat(hdfs_path: str, **kwargs: object) -> Any:
    """Return what `os.stat` would, as far as the storage knows it."""
    return hops.stat(hdfs_path)
