"""Where the processes of a deployment meet on this machine: a folder that only this user can enter.

It holds their sockets, whose paths must be short, and the secret that they know each other by. It is not part of the
project: it is true on this machine only, and may be deleted when nothing runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import Final

from cargobike.core.errors import DeploymentError
from cargobike.core.layout import ProjectFolder

SUPERVISOR: Final = "supervisor.sock"
_SECRET: Final = "secret"  # noqa: S105 - the name of a file
_LONGEST: Final = 60
"""Sockets have paths of at most 107 bytes; the names of ours are shorter than the rest."""


def runtime_folder(project: ProjectFolder, name: str) -> Path:
    """Return the folder of a deployment; the same in every process of this user."""
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    root = Path(run) / "cargobike"
    if not run or not os.path.isdir(run) or len(os.fsencode(root)) > _LONGEST:
        root = Path(f"/tmp/cargobike-{os.geteuid()}")  # noqa: S108 - checked below: it must be ours, and closed
    digest = hashlib.sha256(f"{project.root.absolute()}\0{name}".encode(errors="surrogateescape")).hexdigest()
    return root / digest[:16]


def prepare_folder(folder: Path) -> None:
    """Make the folder, and see that no other user can enter it.

    Raises:
        DeploymentError: If it, or the one above it, is another user's, or open to others.
    """
    for place in (folder.parent, folder):
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            status = os.lstat(place)
        except OSError as error:
            raise DeploymentError(f"The folder {place} for sockets cannot be made: {error.strerror}.") from error
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise DeploymentError(
                f"The folder {place} for sockets must be yours alone: a folder with mode 700. Remove it, or set "
                "XDG_RUNTIME_DIR to a folder that is."
            )


def secret_of(folder: Path) -> str:
    """Return what the processes of a deployment know each other by; made when it is first asked for."""
    path = folder / _SECRET
    with contextlib.suppress(FileNotFoundError):
        if text := path.read_text().strip():
            return text
    secret = secrets.token_hex(32)
    aside = folder / f".{_SECRET}.{os.getpid()}"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(secret)
    aside.replace(path)
    return secret


def remove_folder(folder: Path) -> None:
    """Delete the folder, when nothing runs any more."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()
