"""Data files of the formats that are read in stretches: which ones are meant, and whether they have changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import pyarrow as pa

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.data.sources.listing import File, files_of, is_address

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One path, glob, folder or address, or several."""


def as_paths(paths: Paths, what: str) -> list[str]:
    """Return paths as texts, those of this machine from its root on.

    Raises:
        InvalidInputError: If there are none.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InvalidInputError(f"No paths were given; give at least one path, glob or address of {what}.")
    texts = [os.fspath(path) for path in given]
    return [text if is_address(text) else os.path.abspath(os.path.expanduser(text)) for text in texts]


def find_files(paths: Sequence[str], endings: Sequence[str]) -> list[File]:
    """Return the files that paths, globs, folders and addresses name, sorted within each.

    Raises:
        NotFoundError: If there is no such file.
    """
    return [file for path in paths for file in files_of(path, endings)]


def name_of(files: Sequence[File]) -> str:
    """Return what people call some files."""
    return files[0].shown if len(files) == 1 else f"{files[0].shown} and {len(files) - 1} more"


def fingerprint_of(files: Sequence[File], options: dict[str, object]) -> str:
    """Return what differs whenever files or the way to read them differ, as far as sizes and times tell."""
    told = repr([(file.relative, file.size, file.changed_ns) for file in files]) + repr(sorted(options.items()))
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def check_unchanged(file: File) -> None:
    """Raise an error if a file is not what it was when it was found.

    Raises:
        StoreError: If it is gone or was changed.
    """
    try:
        size, changed_ns = file.now()
    except OSError as error:
        raise StoreError(f"{file.shown} cannot be read: {error}") from error
    if (size, changed_ns) != (file.size, file.changed_ns):
        raise StoreError(
            f"{file.shown} has changed since it was opened: it had {file.size:,} bytes and has {size:,}. Open the data "
            "again; files that are read must not be written to."
        )


def read_range(file: File, start: int, length: int) -> bytes:
    """Return bytes of a file.

    Raises:
        StoreError: If it cannot be read, or is shorter than it was.
    """
    try:
        with file.system.open_input_file(file.path) as opened:
            data = bytes(opened.read_at(length, start))
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{file.shown} cannot be read: {error}") from error
    if len(data) != length:
        raise StoreError(
            f"{file.shown}: {len(data):,} bytes came from byte {start:,} on, where {length:,} should be. "
            "Open the data again."
        )
    return data
