"""`hops.dataset`: files to and from the project, and archives of them."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from cargobike.compat.hops import hdfs
from cargobike.compat.hops.translating.files import Item, ProjectFiles
from cargobike.compat.hops.translating.handle import details
from cargobike.compat.noticing import formerly
from cargobike.core.errors import StoreError

__all__ = ["compress", "delete", "download", "extract", "get_path_info", "path_exists", "upload"]

_LARGEST_ARCHIVE = 1 << 40
"""How many bytes an archive may hold in all; one that says more is not extracted."""


@formerly("hops.dataset.upload")
def upload(file: str, remote_path: str, chunk_size: int | None = None) -> None:
    """Copy a local file into a folder of the project, and replace one of that name."""
    hdfs.copy_to_hdfs(file, remote_path, overwrite=True)


@formerly("hops.dataset.download")
def download(remote_path: str, file: str, chunk_size: int | None = None) -> None:
    """Copy a file of the project to a local path."""
    files, target = ProjectFiles(), Path(file).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    files.download(_find(files, remote_path), target)


@formerly("hops.dataset.delete")
def delete(remote_path: str, project_name: str | None = None, block: bool = True, timeout: int = 30) -> None:
    """Delete a file, or a folder with everything in it."""
    files = ProjectFiles()
    files.remove(_find(files, remote_path))


@formerly("hops.dataset.path_exists")
def path_exists(remote_path: str, project_name: str | None = None) -> bool:
    """Tell whether there is a file or folder."""
    files = ProjectFiles()
    return files.look(files.inner(_absolute(remote_path))) is not None


@formerly("hops.dataset.get_path_info")
def get_path_info(remote_path: str, project_name: str | None = None) -> dict[str, Any]:
    """Return what is known of a file or folder."""
    files = ProjectFiles()
    item = _find(files, remote_path)
    return {**details(files, item), "attributes": {"path": files.full(item.path), "dir": item.is_folder}}


@formerly("hops.dataset.compress")
def compress(remote_path: str, project_name: str | None = None, block: bool = False, timeout: int = 120) -> None:
    """Write an archive of a file or folder beside it: `data` becomes `data.zip`."""
    files = ProjectFiles()
    item = _find(files, remote_path)
    start = len(item.path.rpartition("/")[0])
    with tempfile.TemporaryFile(prefix="cargobike-") as scratch:
        with zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in [entry.path for entry in files.files(item.path)] if item.is_folder else [item.path]:
                with files.open_read(path) as source, archive.open(path[start:].lstrip("/"), "w") as member:
                    _pour(source, member)
        scratch.seek(0)
        with files.open_write(f"{item.path}.zip") as target:
            _pour(scratch, target)


@formerly("hops.dataset.extract")
def extract(remote_path: str, project_name: str | None = None, block: bool = False, timeout: int = 120) -> None:
    """Write what is in an archive into the folder that it lies in.

    Raises:
        StoreError: If a path in the archive leads out of that folder, or it holds too much.
    """
    files = ProjectFiles()
    item = _find(files, remote_path)
    folder = item.path.rpartition("/")[0]
    with files.open_read(item.path) as source, zipfile.ZipFile(source) as archive:
        members = [one for one in archive.infolist() if not one.is_dir()]
        unsafe = [one.filename for one in members if not _is_inside(one.filename)]
        if unsafe or sum(one.file_size for one in members) > _LARGEST_ARCHIVE:
            raise StoreError(
                f"{item.path} is not extracted: {', '.join(unsafe[:3]) or 'it'} leads out or is too large."
            )
        for one in members:
            target = "/".join(filter(None, [folder, os.path.normpath(one.filename)]))
            with archive.open(one) as member, files.open_write(target) as writer:
                _pour(member, writer)


def _find(files: ProjectFiles, path: str) -> Item:
    return files.find(_absolute(path))


def _absolute(path: str) -> str:
    """Return a path as everywhere else: this part of hops writes `Projects/…` without a slash before it."""
    return f"/{path}" if path.startswith("Projects/") else path


def _is_inside(name: str) -> bool:
    return not os.path.isabs(name) and ".." not in name.split("/") and "\\" not in name


def _pour(source: Any, target: Any) -> None:
    while piece := source.read(4 << 20):
        target.write(piece)
