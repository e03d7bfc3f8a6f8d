"""The directory that a train function works in."""

from __future__ import annotations

import contextlib
import os


class Desk:
    """The directory that user code works in: one for each trial, kept only if something was left in it.

    Making and removing a directory takes most of the time of a tiny trial. An empty one is therefore renamed for the
    next trial, which costs a tenth, and the working directory goes with it.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._path: str | None = None

    def move_to(self, trial: str) -> None:
        """Work in an empty directory of this trial's own, or the one where an earlier attempt has worked."""
        target = f"{self._root}/{trial}"
        if self._path is not None:
            with contextlib.suppress(OSError):  # something was left here or, by an earlier attempt, in the target
                if not os.listdir(self._path):
                    os.rename(self._path, target)
                    self._path = target
                    os.chdir(target)
                    return
            with contextlib.suppress(OSError):
                os.rmdir(self._path)
        os.makedirs(target, exist_ok=True)
        os.chdir(target)
        self._path = target

    def clear(self) -> None:
        """Leave the directory, and remove it if it is empty."""
        os.chdir("/")
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self._path)
