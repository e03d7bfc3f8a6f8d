"""The programs that tests call besides Python, and what becomes of tests whose program is missing.

`.ci/system-packages` installs them where it may: as root, with apt. Elsewhere the tests that need a missing program are
skipped and say what to install; everything else runs.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

PACKAGES = {
    "git": "git",
    "chromium": "chromium",
    "postgres": "postgresql",
    "ip": "iproute2",
    "redis-server": "redis-server",
}
"""By program: the Debian package that has it."""

CAN_INSTALL = os.geteuid() == 0 and shutil.which("apt-get") is not None
"""Whether whatever is missing has been installed by `make test`, so that nothing may be missing."""


def find(program: str) -> str | None:
    """Return the path of a program, under any of its names; of `postgres`, wherever Debian puts its newest version."""
    if program == "chromium":
        names = ("chromium", "chromium-browser", "google-chrome")
        return next((path for name in names if (path := shutil.which(name))), None)
    if program == "postgres":
        versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
        newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
        return str(newest) if newest else shutil.which("initdb")
    return shutil.which(program)


def reason(program: str) -> str:
    """Return the words with which a test is skipped for want of a program."""
    return f"needs {program}: apt-get install {PACKAGES[program]}"


def require(program: str) -> str:
    """Return the path of a program, or skip the test and say what to install."""
    if path := find(program):
        return path
    pytest.skip(reason(program))
