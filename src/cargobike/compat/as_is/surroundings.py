"""The path on which a program, and every process that it starts, finds ours where it imports an older library."""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, nearest

FOLDER: Final = Path(__file__).with_name("stand_ins")
"""Holds a folder for each library, with nothing in it but the module that ours stands in for."""
_PACKAGE: Final = Path(settings.__file__).parent.parent


def stand_ins() -> list[str]:
    """Return the libraries that ours can stand in for."""
    return sorted(folder.name for folder in FOLDER.iterdir() if (folder / f"{folder.name}.py").is_file())


def checked_real(names: Collection[str]) -> frozenset[str]:
    """Return libraries that are wanted as they are installed.

    Raises:
        InvalidInputError: If one is not known here or is not installed.
    """
    mistakes = []
    for name in names:
        if name not in stand_ins():
            mistakes.append(f"{name!r} is not one of {', '.join(stand_ins())}.{nearest(name, stand_ins())}")
        elif not _is_installed(name):
            mistakes.append(f"{name} itself was asked for, and is not installed: pip install {name}, or leave it out.")
    if mistakes:
        raise InvalidInputError(" ".join(mistakes))
    return frozenset(names)


def put_on_path(real: Collection[str] = ()) -> None:
    """Let this process, and those that it starts, import ours by the older names.

    Args:
        real: Libraries that are to be imported as they are installed.
    """
    folders = [str(FOLDER / name) for name in stand_ins() if name not in real]
    sys.path[:0] = folders
    others = _without_ours(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *others])
    inside = (Path(folder).relative_to(_PACKAGE).as_posix() for folder in folders)
    os.environ[settings.PACKAGE_PATH] = os.pathsep.join(inside)


def _is_installed(name: str) -> bool:
    """Tell whether there is such a library; a folder of that name without a module in it does not count."""
    spec = importlib.machinery.PathFinder.find_spec(name, _without_ours(sys.path))
    return spec is not None and spec.origin is not None


def _without_ours(path: Collection[str] | filter[str]) -> list[str]:
    return [folder for folder in path if Path(folder).parent != FOLDER]
