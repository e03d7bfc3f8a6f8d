"""The token of a caller: given, in the environment, or in a file that only its owner can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError

_LONGEST: Final = 500


def find_token(token: str | None = None, token_file: str | Path | None = None) -> str | None:
    """Return the token to use: the one that was given, the one in the file, or the environment's; `None` for none.

    Raises:
        InvalidInputError: If the file cannot be used, or holds no token.
    """
    if token is None and token_file is None:
        token = settings.token() or None
        token_file = settings.token_file() or None
    if token is None and token_file is not None:
        token = _read(Path(token_file).expanduser())
    return None if token is None else _checked(token)


def _read(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidInputError(f"The token in {file} cannot be read: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) & 0o077:
            raise InvalidInputError(f"Others can read the token in {file}; make it yours alone: chmod 600 {file}")
        return opened.read(_LONGEST + 2).decode("ascii", "replace").strip()


def _checked(token: str) -> str:
    if not token or len(token) > _LONGEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInputError(
            f"That is no token: a token is up to {_LONGEST} letters, digits and signs, as it was printed."
        )
    return token
