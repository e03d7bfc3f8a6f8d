"""Which files belong to installed libraries."""

from __future__ import annotations

import os
import sysconfig

_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
_LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages"})


def is_in_library(path: str) -> bool:
    """Tell whether a file belongs to an installed library.

    An environment may see the libraries of another one (`--system-site-packages`, a `.pth` file): those lie in a folder
    of the usual name, wherever that is.
    """
    return path.startswith(_LIBRARIES) or not _LIBRARY_FOLDERS.isdisjoint(path.split(os.sep))
