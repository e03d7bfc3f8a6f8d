"""`hops.numpy_helper`: arrays in the project's files, read in place where their format allows it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from cargobike.compat.hops.translating.files import ProjectFiles
from cargobike.compat.hops.translating.local import local_file
from cargobike.compat.noticing import formerly

__all__ = ["fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "save", "savez", "savez_compressed"]


@formerly("hops.numpy_helper.load")
def load(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `numpy.load` does; of an `.npz` only the arrays that are used are read.

    Arrays of Python objects are refused unless `allow_pickle=True`, since loading them runs code.
    """
    files = ProjectFiles()
    if kwargs.get("mmap_mode"):
        return np.load(local_file(files, hdfs_path), **kwargs)
    file = files.open_read(files.inner(hdfs_path))
    loaded = np.load(file, **kwargs)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        file.close()
    return loaded


@formerly("hops.numpy_helper.loadtxt")
def loadtxt(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `numpy.loadtxt` does, read line by line."""
    with _text(hdfs_path) as file:
        return np.loadtxt(file, **kwargs)


@formerly("hops.numpy_helper.genfromtxt")
def genfromtxt(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `numpy.genfromtxt` does, read line by line."""
    with _text(hdfs_path) as file:
        return np.genfromtxt(file, **kwargs)


@formerly("hops.numpy_helper.fromregex")
def fromregex(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `numpy.fromregex` does."""
    with _text(hdfs_path) as file:
        return np.fromregex(file, **kwargs)


@formerly("hops.numpy_helper.fromfile")
def fromfile(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `numpy.fromfile` does."""
    return np.fromfile(local_file(ProjectFiles(), hdfs_path), **kwargs)


@formerly("hops.numpy_helper.memmap")
def memmap(hdfs_path: str, **kwargs: Any) -> Any:
    """Return a `numpy.memmap` of a file; what is changed in one of a project elsewhere than on a disk stays here."""
    kwargs.setdefault("mode", "r")
    return np.memmap(local_file(ProjectFiles(), hdfs_path), **kwargs)


@formerly("hops.numpy_helper.save")
def save(hdfs_path: str, data: Any) -> None:
    """Write an array as `.npy`."""
    with _writer(hdfs_path, ".npy") as file:
        np.save(file, data)


@formerly("hops.numpy_helper.savez")
def savez(hdfs_path: str, *args: Any, **kwargs: Any) -> None:
    """Write arrays as `.npz`."""
    with _writer(hdfs_path, ".npz") as file:
        np.savez(file, *args, **kwargs)


@formerly("hops.numpy_helper.savez_compressed")
def savez_compressed(hdfs_path: str, *args: Any, **kwargs: Any) -> None:
    """Write arrays as compressed `.npz`."""
    with _writer(hdfs_path, ".npz") as file:
        np.savez_compressed(file, *args, **kwargs)


def _text(path: str) -> io.TextIOWrapper:
    files = ProjectFiles()
    return io.TextIOWrapper(files.open_read(files.inner(path)), encoding="utf-8")


def _writer(path: str, ending: str) -> Any:
    files = ProjectFiles()
    inner = files.inner(path)
    return files.open_write(inner if inner.endswith(ending) else inner + ending)
