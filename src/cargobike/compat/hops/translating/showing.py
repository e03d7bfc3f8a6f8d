"""What the ranks of a job print, shown while it runs."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from cargobike import project
from cargobike.journals import ExperimentStarted, Fact

_PAUSE_S = 0.2
_RANK = re.compile(r"(stdout|stderr)(?:\.rank(\d+))?\.log")


class ShownOutput:
    """Copies what the ranks of an experiment print to this process's output, line by line, each with its rank.

    A callback of the experiment, which says which one it is, and a context that shows while it is entered.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._is_over = threading.Event()
        self._shown: dict[Path, int] = {}
        self._thread = threading.Thread(target=self._follow, name="shown-output", daemon=True)

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Learn where the output lies."""
        for fact in facts:
            if isinstance(fact, ExperimentStarted):
                self._folder = project.current().experiment(fact.id).trial(0).root

    def __enter__(self) -> ShownOutput:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            self._show()
        self._show(is_last=True)

    def _show(self, *, is_last: bool = False) -> None:
        if self._folder is None or not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            if match := _RANK.fullmatch(path.name):
                self._show_file(path, match[2] or "0", sys.stderr if match[1] == "stderr" else sys.stdout, is_last)

    def _show_file(self, path: Path, rank: str, stream: Any, is_last: bool) -> None:
        with path.open("rb") as file:
            file.seek(self._shown.get(path, 0))
            text = file.read()
        whole = text if is_last else text[: text.rfind(b"\n") + 1]
        self._shown[path] = self._shown.get(path, 0) + len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            stream.write(f"[{rank}] {line}\n")
