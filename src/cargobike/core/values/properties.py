"""Files with one `name=value` in each line, in which users keep settings of a client, secrets among them."""

from __future__ import annotations

from pathlib import Path

from cargobike.core.errors import InvalidInputError


def read_properties(path: str, variable: str) -> dict[str, str]:
    """Return what such a file says; nothing if no file was named.

    Args:
        path: The file, empty if there is none.
        variable: The environment variable that names it, for the error.

    Raises:
        InvalidInputError: If it cannot be read.
    """
    if not path:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{variable} names {path}, which cannot be read: {error}") from error
    pairs = (line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}
