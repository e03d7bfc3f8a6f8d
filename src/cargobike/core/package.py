"""Where Cargobike itself is installed, and how it is loaded quickly; first on the way to the first process."""

from __future__ import annotations

import os
import sys

PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the package `cargobike`."""

PACKAGE_PARENT = os.path.dirname(PACKAGE_FOLDER)
"""What must be on `sys.path` for `import cargobike` to work."""

_DISPENSABLE = "typing_extensions"


def load_msgspec() -> None:
    """Load msgspec without `typing_extensions`.

    It takes two names from there if it can, and otherwise the same ones from `typing`. Loading that library, and
    `inspect` with it, would take a third of the time. Other threads may want to load it themselves just now: then, and
    where it is loaded already, everything goes its usual way.
    """
    if "msgspec" in sys.modules or _DISPENSABLE in sys.modules or len(sys._current_frames()) > 1:
        return
    sys.modules[_DISPENSABLE] = None  # type: ignore[assignment] # "not there", as the import system understands it
    try:
        import msgspec  # noqa: F401, PLC0415
    finally:
        sys.modules.pop(_DISPENSABLE, None)
