"""A folder for what Spark needs until its Java runs: nothing of it lies around when the driver is killed meanwhile.

Spark's own launcher makes a temporary folder in which Java says where it listens, and removes it afterwards, unless it
is killed before. Ours lie in one place, with the name of the process that made them, so that the next one that starts
Spark removes what dead ones have left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.settings import cache_folder

_LONGEST_NAME = 255


@contextlib.contextmanager
def folder_for_starting() -> Iterator[Path]:
    """Give a folder for the length of a `with` block, after removing those of processes that have ended."""
    parent = Path(cache_folder()) / "spark-starts"
    try:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(parent)
        owner = quote(name_of_this_process().strip(), safe="")[: _LONGEST_NAME - 20]
        folder = Path(tempfile.mkdtemp(prefix=f"{owner}+", dir=parent))
    except OSError:  # no room for a cache here
        folder = Path(tempfile.mkdtemp(prefix="cargobike-spark-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def temporary_files_in(module: Any, folder: Path) -> Iterator[None]:
    """Have a module that makes temporary folders make them in this one; other modules and threads do not notice."""
    standard = module.tempfile
    module.tempfile = _TemporaryFiles(folder)
    try:
        yield
    finally:
        module.tempfile = standard


class _TemporaryFiles:
    """What Spark's launcher uses of `tempfile`, in a folder of our choice."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def mkdtemp(self) -> str:
        return tempfile.mkdtemp(dir=self._folder)

    def __getattr__(self, name: str) -> Any:
        return getattr(tempfile, name)


def _sweep(parent: Path) -> None:
    for name in os.listdir(parent):
        if has_ended(unquote(name.partition("+")[0])):
            shutil.rmtree(parent / name, ignore_errors=True)
