"""Who runs this process."""

from __future__ import annotations

import getpass


def user_name() -> str:
    """Return who runs this process, empty if the system does not know."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
