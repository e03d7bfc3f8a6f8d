"""Artifacts: files that are kept with a trial."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from cargobike.core.errors import InvalidInputError


def keep_artifact(path: Path, files: Path, name: str | None) -> Path:
    """Copy a file or a folder into a trial's files; what lies there already stays where it is.

    Raises:
        InvalidInputError: If there is no such file, or the name leads out of the folder.
    """
    if not path.exists():
        raise InvalidInputError(f"There is no file or folder {str(path)!r} to keep; looked in {Path.cwd()}.")
    inside = files.resolve() in path.resolve().parents
    if inside and name is None:
        return path.resolve()
    target = PurePosixPath(name or path.resolve().name)
    if target.is_absolute() or ".." in target.parts or not target.parts:
        raise InvalidInputError(f"The artifact's name {name!r} must be a relative path inside the trial's files.")
    copy = files / target
    temporary = copy.with_name(f".{copy.name}.new")
    copy.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(path, temporary, symlinks=True)
        shutil.rmtree(copy, ignore_errors=True)
    else:
        shutil.copyfile(path, temporary)
    os.replace(temporary, copy)
    return copy
