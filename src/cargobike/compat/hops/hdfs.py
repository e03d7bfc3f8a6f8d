"""`hops.hdfs` over the project's files: in a folder, on S3, on HDFS.

Paths are relative to the project, begin with `/Projects/<name>`, or are full, as `project_path()` and `ls` return them.
"""

from __future__ import annotations

import fnmatch
import importlib
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from cargobike.compat.hops.translating.files import Item, MissingPathError, ProjectFiles
from cargobike.compat.hops.translating.files import project_name as _project_name
from cargobike.compat.hops.translating.handle import Handle, details, status_of
from cargobike.compat.hops.translating.transfers import local_sizes, read_mode, sizes_of, transfer
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.source_code import code_of_notebook

__all__ = [
    "abs_path",
    "access",
    "add_module",
    "capacity",
    "chmod",
    "chown",
    "close",
    "copy_from_project",
    "copy_to_hdfs",
    "copy_to_local",
    "copy_to_project",
    "cp",
    "delete",
    "dump",
    "exists",
    "get",
    "get_fs",
    "get_plain_path",
    "glob",
    "is_tls_enabled",
    "isdir",
    "isfile",
    "load",
    "log",
    "ls",
    "lsl",
    "mkdir",
    "move",
    "open_file",
    "project_id",
    "project_name",
    "project_path",
    "project_user",
    "rename",
    "rmr",
    "stat",
]


@formerly("hops.hdfs.project_path")
def project_path(project: str | None = None, exclude_nn_addr: bool = False) -> str:
    """Return where the project lies, with a slash at the end."""
    files = ProjectFiles()
    files.inner("", project)
    return files.root + "/"


@formerly("hops.hdfs.project_name")
def project_name() -> str:
    """Return what the project is called: as Hopsworks set it, else by where it lies."""
    return _project_name()


@formerly("hops.hdfs.project_user")
def project_user() -> str:
    """Return the user, as Hopsworks spells it: `project__user`."""
    user = os.environ.get("HADOOP_USER_NAME") or os.environ.get("HDFS_USER")
    return user or f"{_project_name()}__{os.environ.get('USER') or os.geteuid()}"


@formerly("hops.hdfs.project_id")
def project_id() -> str:
    """Return the project's number on Hopsworks if one is set, else its name."""
    return os.environ.get("HOPSWORKS_PROJECT_ID") or _project_name()


@formerly("hops.hdfs.copy_to_hdfs")
def copy_to_hdfs(local_path: str, relative_hdfs_path: str, overwrite: bool = False, project: str | None = None) -> None:
    """Copy a local file or folder into a folder of the project.

    Raises:
        MissingPathError: If there is no such local file.
        StoreError: If something of that name is there, unless `overwrite`.
    """
    files, source = ProjectFiles(), Path(local_path).absolute()
    if not source.exists():
        raise MissingPathError(f"There is no local file or folder {local_path!r}.")
    folder = files.inner(relative_hdfs_path, project)
    item = files.look(folder)
    if item is not None and not item.is_folder:
        if not overwrite:
            raise StoreError(f"{files.full(folder)} is there already; overwrite=True replaces it.")
        files.upload(source, folder)
        return
    target = "/".join(filter(None, [folder, source.name]))
    present = files.look(target)
    if present is not None:
        if not overwrite:
            raise StoreError(f"{files.full(target)} is there already; overwrite=True replaces it.")
        files.remove(present)
    files.upload(source, target)


@formerly("hops.hdfs.copy_to_local")
def copy_to_local(hdfs_path: str, local_path: str = "", overwrite: bool = False, project: str | None = None) -> str:
    """Copy a file or folder of the project into a local folder, and return its full local path.

    What is there already, with the same names and sizes, is not copied again unless `overwrite`.

    Raises:
        MissingPathError: If there is no such file, or no such local folder.
        StoreError: If there is not enough room.
    """
    files, folder = ProjectFiles(), Path(local_path or ".").absolute()
    if not folder.is_dir():
        raise MissingPathError(f"{local_path!r} is no local folder; give one that exists.")
    item = files.find(hdfs_path, project)
    target = folder / item.path.rpartition("/")[2]
    sizes = sizes_of(files, item)
    if not overwrite and target.exists() and local_sizes(target) == sizes:
        return str(target)
    needed, free = sum(sizes.values()), shutil.disk_usage(folder).free
    if needed > free:
        raise StoreError(f"{files.full(item.path)} has {needed} bytes; there is room for {free} in {folder}.")
    files.download(item, target)
    return str(target)


def copy_to_project(local_path: str, relative_hdfs_path: str, overwrite: bool = False) -> None:
    """Copy a local file or folder into a folder of the project, as it was called in 2018."""
    copy_to_hdfs(local_path, relative_hdfs_path, overwrite)


def copy_from_project(relative_hdfs_path: str, local_path: str = "", overwrite: bool = False) -> str:
    """Copy a file or folder of the project into a local folder, as it was called in 2018."""
    return copy_to_local(relative_hdfs_path, local_path, overwrite)


@formerly("hops.hdfs.ls")
def ls(hdfs_path: str, recursive: bool = False, project: str | None = None, exclude_nn_addr: bool = False) -> list[str]:
    """Return the full paths of what is in a folder, sorted."""
    files = ProjectFiles()
    items = files.list(files.find(hdfs_path, project), recursive=recursive)
    return [files.full(item.path) for item in items]


@formerly("hops.hdfs.lsl")
def lsl(hdfs_path: str, recursive: bool = False, project: str | None = None) -> list[dict[str, Any]]:
    """Return what is in a folder, of each a dict with `name`, `kind`, `size`, `last_mod`, `permissions` and others."""
    files = ProjectFiles()
    return [details(files, item) for item in files.list(files.find(hdfs_path, project), recursive=recursive)]


@formerly("hops.hdfs.glob")
def glob(hdfs_path: str, recursive: bool = False, project: str | None = None) -> list[str]:
    """Return the full paths in a folder whose names match a pattern, such as `Resources/*.json`."""
    files = ProjectFiles()
    folder, _, pattern = files.inner(hdfs_path, project).rpartition("/")
    items = files.list(files.find(folder), recursive=recursive)
    return [files.full(item.path) for item in items if fnmatch.fnmatchcase(item.path.rpartition("/")[2], pattern)]


@formerly("hops.hdfs.exists")
def exists(hdfs_path: str, project: str | None = None) -> bool:
    """Tell whether there is a file or folder."""
    files = ProjectFiles()
    return files.look(files.inner(hdfs_path, project)) is not None


@formerly("hops.hdfs.isdir")
def isdir(hdfs_path: str, project: str | None = None) -> bool:
    """Tell whether there is a folder."""
    files = ProjectFiles()
    item = files.look(files.inner(hdfs_path, project))
    return item is not None and item.is_folder


@formerly("hops.hdfs.isfile")
def isfile(hdfs_path: str, project: str | None = None) -> bool:
    """Tell whether there is a file."""
    files = ProjectFiles()
    item = files.look(files.inner(hdfs_path, project))
    return item is not None and not item.is_folder


@formerly("hops.hdfs.load")
def load(hdfs_path: str) -> bytes:
    """Return the bytes of a file."""
    files = ProjectFiles()
    with files.open_read(files.inner(hdfs_path)) as file:
        return file.read()


@formerly("hops.hdfs.dump")
def dump(data: str | bytes, hdfs_path: str) -> int:
    """Write a file whole, replace what was there, and return how many bytes it has."""
    files = ProjectFiles()
    content = data.encode() if isinstance(data, str) else bytes(data)
    files.storage.write(files.inner(hdfs_path), content)
    return len(content)


@formerly("hops.hdfs.mkdir")
def mkdir(hdfs_path: str, project: str | None = None) -> None:
    """Make a folder, and those above it."""
    files = ProjectFiles()
    files.make_folder(files.inner(hdfs_path, project))


@formerly("hops.hdfs.rmr")
def rmr(hdfs_path: str, project: str | None = None) -> None:
    """Delete a file, or a folder with everything in it."""
    files = ProjectFiles()
    files.remove(files.find(hdfs_path, project))


@formerly("hops.hdfs.delete")
def delete(hdfs_path: str, recursive: bool = False) -> None:
    """Delete a file, or an empty folder; with `recursive` a folder with everything in it.

    Raises:
        StoreError: If a folder is not empty, and not `recursive`.
    """
    files = ProjectFiles()
    item = files.find(hdfs_path)
    if item.is_folder and not recursive and files.list(item):
        raise StoreError(f"{files.full(item.path)} is a folder that is not empty; recursive=True deletes it all.")
    files.remove(item)


@formerly("hops.hdfs.cp")
def cp(src_hdfs_path: str, dest_hdfs_path: str, overwrite: bool = False) -> None:
    """Copy a file or folder to a path, or into a folder that exists.

    Raises:
        StoreError: If a file is there already, and not `overwrite`.
    """
    files = ProjectFiles()
    transfer(files, files.find(src_hdfs_path), dest_hdfs_path, overwrite=overwrite)


@formerly("hops.hdfs.move")
def move(src: str, dest: str) -> None:
    """Move a file or folder to a path, or into a folder that exists."""
    files = ProjectFiles()
    source = files.find(src)
    transfer(files, source, dest)
    files.remove(source)


@formerly("hops.hdfs.rename")
def rename(src: str, dest: str) -> None:
    """Rename a file or folder."""
    move(src, dest)


@formerly("hops.hdfs.stat")
def stat(hdfs_path: str, project: str | None = None) -> SimpleNamespace:
    """Return `st_size`, `st_mtime`, `st_mode`, `st_uid`, `st_gid` and `kind`, as far as the storage knows them."""
    files = ProjectFiles()
    return status_of(files, files.find(hdfs_path, project))


@formerly("hops.hdfs.chmod")
def chmod(hdfs_path: str, mode: int | str, project: str | None = None) -> None:
    """Change the mode of a file or folder on a disk; `700` and `0o700` mean the same.

    Raises:
        InvalidInputError: If there are no modes where the project lies, or it is no mode.
    """
    files = ProjectFiles()
    item = files.find(hdfs_path, project)
    _on_disk(files, item, "chmod").chmod(read_mode(mode))


@formerly("hops.hdfs.chown")
def chown(hdfs_path: str, user: str, group: str, project: str | None = None) -> None:
    """Change the owner and the group of a file or folder on a disk."""
    files = ProjectFiles()
    item = files.find(hdfs_path, project)
    shutil.chown(_on_disk(files, item, "chown"), user or None, group or None)  # type: ignore[arg-type]


@formerly("hops.hdfs.access")
def access(hdfs_path: str, mode: int, project: str | None = None) -> bool:
    """Tell whether a file may be used as `os.access` means it; where there are no modes, what exists may be."""
    files = ProjectFiles()
    path = files.local(files.find(hdfs_path, project).path)
    return path is None or os.access(path, mode)


@formerly("hops.hdfs.abs_path")
def abs_path(hdfs_path: str) -> str:
    """Return the full path of something that exists."""
    files = ProjectFiles()
    return files.full(files.find(hdfs_path).path)


@formerly("hops.hdfs.get_plain_path")
def get_plain_path(abs_path: str) -> str:
    """Return a path as it is below `/Projects`, without scheme and host."""
    return "/".join(filter(None, [f"/Projects/{_project_name()}", ProjectFiles().inner(abs_path)]))


@formerly("hops.hdfs.open_file")
def open_file(hdfs_path: str, project: str | None = None, flags: str = "rw", buff_size: int = 0) -> IO[Any]:
    """Open a file: `r`, `w` or `a`, with a `t` for text. What is written appears when the file is closed."""
    files = ProjectFiles()
    return Handle(files).open_file(files.full(files.inner(hdfs_path, project)), flags)


def get_fs() -> Handle:
    """Return an object with the calls of a file system of pydoop's."""
    return Handle(ProjectFiles())


def get() -> Handle:
    """Return an object with the calls of a file system of pydoop's."""
    return get_fs()


def close() -> None:
    """Accept the call: there is no connection to close."""


def capacity() -> int:
    """Return how many bytes the disk has that the project lies on."""
    files = ProjectFiles()
    return shutil.disk_usage(_on_disk(files, files.find(""), "capacity")).total


def is_tls_enabled() -> bool:
    """Tell whether connections to the file system need certificates of Hopsworks: never."""
    return False


@formerly("hops.hdfs.log")
def log(string: object) -> None:
    """Print a line; what a train function prints is kept with its trial."""
    sys.stdout.write(f"{string}\n")


@formerly("hops.hdfs.add_module")
def add_module(hdfs_path: str, project: str | None = None) -> str:
    """Make a `.py` or `.ipynb` of the project importable by its name, and return the local file.

    Raises:
        InvalidInputError: If it is neither.
    """
    files = ProjectFiles()
    item = files.find(hdfs_path, project)
    name = item.path.rpartition("/")[2]
    if item.is_folder or not name.endswith((".py", ".ipynb")):
        raise InvalidInputError(f"{hdfs_path!r} is neither a script nor a notebook; give a .py or .ipynb file.")
    folder = Path("localized_deps").absolute()
    folder.mkdir(exist_ok=True)
    text = files.open_read(item.path).read().decode("utf-8")
    path = folder / f"{Path(name).stem}.py"
    path.write_text(code_of_notebook(text) if name.endswith(".ipynb") else text, encoding="utf-8")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()
    if path.stem in sys.modules:
        importlib.reload(sys.modules[path.stem])
    return str(path)


def _on_disk(files: ProjectFiles, item: Item, call: str) -> Path:
    path = files.local(item.path)
    if path is None:
        raise InvalidInputError(f"hdfs.{call} needs a project on a disk; {files.storage} keeps no such thing.")
    return path
