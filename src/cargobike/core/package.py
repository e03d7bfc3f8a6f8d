"""Where Cargobike itself is installed; imported on the way to the first process, so by as little as possible."""

from __future__ import annotations

import os

PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the package `cargobike`."""

PACKAGE_PARENT = os.path.dirname(PACKAGE_FOLDER)
"""What must be on `sys.path` for `import cargobike` to work."""
