"""Passing on what the processes of a pod print: a cluster collects what its first process writes, and no files."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

_LOOK_S: Final = 0.5
_MOST_BYTES: Final = 1 << 20
"""How much of a file is passed on in one look: a process that prints without end must not hold up the others."""


class Echo:
    """Writes the lines that appear in the files of a folder, each behind the name of its file, while a block runs.

    What was there before is not repeated: a container that is started again finds the files of the one before. A line
    is passed on when it has ended, or when the block has.

    Args:
        folder: Where the files are, or will be.
        write: Takes a line.
    """

    def __init__(self, folder: Path, write: Callable[[str], None]) -> None:
        self._folder = folder
        self._write = write
        self._read: dict[str, int] = {}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="echo", daemon=True)

    def __enter__(self) -> None:
        self._read = {path.name: path.stat().st_size for path in self._paths()}
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.look(is_last=True)

    def look(self, *, is_last: bool = False) -> None:
        """Pass on what is new."""
        for path in self._paths():
            with self._lock, contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(self._read.get(path.name, 0))
                new = file.read(_MOST_BYTES)
                whole = new if is_last or len(new) == _MOST_BYTES else new[: new.rfind(b"\n") + 1]
                self._read[path.name] = self._read.get(path.name, 0) + len(whole)
                for line in whole.decode(errors="replace").splitlines():
                    self._write(f"{path.stem}: {line}")

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.look()

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.log"))
