"""Read files that others may have put there: a pipe or a device in the place of a file is refused, not waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_plain(path: Path | str) -> BinaryIO:
    """Open a file to read it.

    Raises:
        OSError: If it cannot be opened, or is no plain file.
    """
    fd = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return open(fd, "rb")


def read_plain(path: Path | str) -> bytes:
    """Return the content of a file; raises what `open_plain` does."""
    with open_plain(path) as file:
        return file.read()
