"""Copying in the project, sizes to compare by, and modes."""

from __future__ import annotations

import stat as modes
from pathlib import Path

from cargobike.compat.hops.translating.files import Item, ProjectFiles
from cargobike.core.errors import InvalidInputError, StoreError


def transfer(files: ProjectFiles, source: Item, target: str, *, overwrite: bool = False) -> None:
    """Copy a file or folder to a path, or into a folder that is there.

    Raises:
        StoreError: If something is there already, and not `overwrite`.
    """
    inner = files.inner(target)
    present = files.look(inner)
    if present is not None and present.is_folder:
        inner = "/".join(filter(None, [inner, source.path.rpartition("/")[2]]))
        present = files.look(inner)
    if present is not None and inner != source.path:
        if not overwrite:
            raise StoreError(f"{files.full(inner)} is there already; delete it first, or copy with overwrite=True.")
        files.remove(present)
    if inner == source.path:
        raise StoreError(f"{files.full(inner)} is the file itself; give another path.")
    files.copy(source, inner)


def sizes_of(files: ProjectFiles, item: Item) -> dict[str, int]:
    """Return the sizes of a file, or of all files in a folder, by path."""
    if not item.is_folder:
        return {"": item.size}
    return {entry.path[len(item.path) + 1 :]: entry.size for entry in files.files(item.path)}


def local_sizes(path: Path) -> dict[str, int]:
    """Return the sizes of a local file, or of all files in a local folder, by path."""
    if path.is_file():
        return {"": path.stat().st_size}
    return {one.relative_to(path).as_posix(): one.stat().st_size for one in path.rglob("*") if one.is_file()}


def read_mode(mode: int | str) -> int:
    """Return a mode that was given as `0o700`, `"700"` or, as scripts of hops do, as the number 700.

    Of the usual modes none, written as `0o…`, reads as another usual one in decimals.

    Raises:
        InvalidInputError: If it is no mode.
    """
    digits = str(mode)
    is_usual = len(digits) == len("700") and set(digits) <= set("04567") and list(digits) == sorted(digits)[::-1]
    try:
        return int(digits, 8) if isinstance(mode, str) or is_usual else modes.S_IMODE(mode)
    except ValueError:
        raise InvalidInputError(f"mode={mode!r}; give one such as 700 or 0o700.") from None
