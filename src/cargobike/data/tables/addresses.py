"""Where a table lies: in the project under a name, or at any path or URL."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from cargobike.core import layout
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.store.files import project
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
ID = re.compile("[0-9a-f]{12}")
FILE = "manifest.json"
_VERSION = re.compile(r"(?P<place>.*[^:/]):(?P<version>[0-9]{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """A place for the versions of one table.

    Attributes:
        storage: The storage below which they lie.
        name: What people call the table.
        in_project: The table's folder in the project, such as `data/higgs`; empty for one elsewhere.
    """

    storage: Storage
    name: str
    in_project: str = ""


def path_of(version: int) -> str:
    """Return where the manifest of a version lies below its table's address."""
    return f"{version}/{FILE}"


def address_of(text: str | os.PathLike[str], folder: ProjectFolder | None = None) -> Address:
    """Return the place that a name, a path or a URL means.

    Args:
        text: A bare name means a table of the project; anything with a slash is a path or a URL.
        folder: The project; by default the one in use.

    Raises:
        InvalidInputError: If it can be neither.
    """
    if isinstance(text, str) and "/" not in text and os.sep not in text and text not in {".", "..", "~"}:
        return named(text, folder)
    place = os.fspath(text)
    if "\0" in place:
        raise InvalidInputError(f"{text!r} was given; a table has a name, a path or a URL.")
    storage = open_storage(place)
    return Address(storage, Path(place.rstrip("/")).name or "table")


def named(name: str, folder: ProjectFolder | None = None) -> Address:
    """Return the place of a table of the project.

    Raises:
        InvalidInputError: If that is no name.
    """
    if not NAME.fullmatch(name):
        raise InvalidInputError(
            f"{name!r} was given as the name of a table; names begin with a letter or digit and have letters, digits, "
            "'.', '_' and '-', 100 at most. Paths and URLs have a slash: './higgs', 's3://bucket/higgs'."
        )
    folder = folder if folder is not None else project.current()
    place = f"{layout.DATA}/{name}"
    url = shared_url(folder)
    return Address(open_storage(f"{url}/{place}" if url else folder.root / place), name, place)


def writable_address(text: str | os.PathLike[str]) -> Address:
    """Return the place that the next version of a table is to be written to; a project that is new is made.

    Raises:
        InvalidInputError: If it names a version, or cannot be a name.
    """
    place, version = split_version(text)
    if version is not None:
        raise InvalidInputError(f"{text!r} was given; versions are numbered by themselves: write to {place!r}.")
    address = address_of(place)
    if address.in_project and ID.fullmatch(address.name):
        raise InvalidInputError(f"{address.name!r} looks like the id of a table; give it another name.")
    if address.in_project:
        project.prepare()
    return address


def split_version(text: str | os.PathLike[str]) -> tuple[str | os.PathLike[str], int | None]:
    """Return a name, path or URL and the version behind it, `None` if it has none.

    Example:
        >>> split_version("higgs:3"), split_version("hdfs://host:9000")
        (('higgs', 3), ('hdfs://host:9000', None))
    """
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None or ("://" in text and "/" not in str(text).partition("://")[2]):  # type: ignore[operator]
        return text, None
    return match["place"], int(match["version"])
