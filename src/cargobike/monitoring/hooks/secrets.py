"""Secrets of hooks: named where a monitor is asked for, taken from the environment when they are needed."""

from __future__ import annotations

import os
import re
from typing import Final

from cargobike.core.errors import InvalidInputError

_NAME: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def filled(text: str) -> str:
    """Return a text with the values of the environment variables that it names as `${NAME}`.

    Raises:
        InvalidInputError: If one is not set; says its name.
    """
    missing = [name for name in _NAME.findall(text) if name not in os.environ]
    if missing:
        raise InvalidInputError(f"The environment variable {missing[0]} is not set where the monitor runs.")
    return _NAME.sub(lambda match: os.environ[match[1]], text)
