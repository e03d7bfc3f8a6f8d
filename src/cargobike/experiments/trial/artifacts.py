"""Artifacts: files that are kept with a trial."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.kinds import read_path
from cargobike.experiments.trial.artifact_contents import content_of, picture_of


def keep_artifact(thing: Any, files: Path, name: str | None, text: str | None = None) -> Path:
    """Keep something in a trial's files: a file or folder by its path, a text, an image, a figure or a table.

    Raises:
        InvalidInputError: If there is no such file, it cannot be kept, or the name leads out of the folder or is longer
            than the file system allows.
    """
    try:
        return _keep(thing, files, name, text)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        given = str(thing) if name is None else name
        size = len(given.encode("utf-8", "replace"))
        raise InvalidInputError(
            f"{given[:40]!r}… ({size} bytes) is too long for the file system of {files}: most take 250 bytes for a "
            "name and 4,000 for a whole path. Give a shorter name=…"
        ) from error


def _keep(thing: Any, files: Path, name: str | None, text: str | None) -> Path:
    if (thing is None) == (text is None):
        raise InvalidInputError(
            "Give either something to keep, or text=…, such as artifact(text='…', name='notes.txt')."
        )
    if text is not None:
        return _write(str(text).encode("utf-8", "replace"), files, name, "text", ".txt")
    if isinstance(thing, str | os.PathLike):
        return _keep_path(Path(thing), files, name)
    picture = picture_of(thing, name)
    if picture is not None:
        return _write(picture, files, name, "image", ".png", any_ending=True)
    kind, suffix, content = content_of(thing)
    return _write(content, files, name, kind, suffix)


def _write(content: bytes, files: Path, name: str | None, kind: str, suffix: str, *, any_ending: bool = False) -> Path:
    target = _free_name(files, kind, suffix) if name is None else _inside(name)
    if not target.suffix:
        target = target.with_suffix(suffix)
    if target.suffix.lower() != suffix and kind != "text" and not any_ending:
        raise InvalidInputError(f"name={name!r}: this is kept as {suffix}; call it {target.with_suffix(suffix)}.")
    path = files / target
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(content)
    os.replace(temporary, path)
    return path


def _free_name(files: Path, kind: str, suffix: str) -> PurePosixPath:
    number = 1
    while (files / (name := f"{kind}{'' if number == 1 else f'-{number}'}{suffix}")).exists():
        number += 1
    return PurePosixPath(name)


def _inside(name: str) -> PurePosixPath:
    target = PurePosixPath(read_path("name", name))
    if target.is_absolute() or ".." in target.parts or not target.parts:
        raise InvalidInputError(f"The artifact's name {name!r} must be a relative path inside the trial's files.")
    return target


def _keep_path(path: Path, files: Path, name: str | None) -> Path:
    """Copy a file or a folder into a trial's files; what lies there already stays where it is."""
    if not path.exists():
        raise InvalidInputError(
            f"There is no file or folder {str(path)[:200]!r} to keep; looked in {Path.cwd()}. "
            "To keep a text, give text=… and a name."
        )
    inside = files.resolve() in path.resolve().parents
    if inside and name is None:
        return path.resolve()
    copy = files / _inside(name or path.resolve().name)
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
