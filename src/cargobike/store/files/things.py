"""The folders of the things of one kind, and the files of a thing that belong to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from cargobike.core.registering.kinds import Kind


def folders_of(kind: Kind, project_root: Path) -> Iterator[Path]:
    """Yield the folders of all things of a kind; what begins with a dot is being made or removed.

    A name that is not text cannot be an id, and no row could hold it.
    """
    try:
        names = sorted(entry.name for entry in (project_root / kind.folder).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (project_root / kind.folder / name for name in names if not name.startswith(".") and _is_text(name))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def files_of(kind: Kind, root: Path, *, with_hidden: bool = True) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files that belong to a thing, by their path in its folder, in order.

    Links, hidden folders and what the kind leaves out do not count; hidden files only `with_hidden`: some of them
    are being written.
    """
    for parent, folders, names in os.walk(root):
        inner = Path(parent).relative_to(root)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and (inner / name).as_posix() not in kind.left_out
        )
        for name in sorted(names):
            path = (inner / name).as_posix()
            if path in kind.left_out or (name.startswith(".") and not with_hidden):
                continue
            try:
                status = os.lstat(os.path.join(parent, name))
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status
