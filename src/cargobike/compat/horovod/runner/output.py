"""What ranks print, passed on line by line: each line with its rank before it, or into a folder for each rank."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, TextIO

from cargobike.core.facts import Fact
from cargobike.core.layout import ProjectFolder, TrialFolder
from cargobike.store.files import project

_LOOK_EVERY_S: Final = 0.1
_AT_ONCE: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16
STREAMS: Final = ("stdout", "stderr")


class RankOutput:
    """Passes on what ranks print, as in `[1]<stdout>:epoch 3`. Used from one thread at a time.

    Args:
        ranks: How many there may be at most.
        folder: Where to write it instead, to `rank.<rank>/stdout` and `rank.<rank>/stderr`.
        stdout: Where their standard output goes; this process's own by default.
        stderr: Where their standard error goes.
        with_time: Whether each line also has the time before it.
    """

    def __init__(
        self,
        ranks: int,
        *,
        folder: str | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        with_time: bool = False,
    ) -> None:
        self._digits = len(str(max(0, ranks - 1)))
        self._folder = None if folder is None else Path(folder)
        self._streams = {"stdout": stdout, "stderr": stderr}
        self._with_time = with_time
        self._rest: dict[tuple[int, str], bytes] = {}
        self._files: dict[tuple[int, str], BinaryIO] = {}

    def take(self, rank: int, stream: str, data: bytes) -> None:
        """Pass on what a rank has printed; the end of a line may come later."""
        if self._folder is not None:
            self._write_file(rank, stream, data)
            return
        *lines, rest = (self._rest.pop((rank, stream), b"") + data).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        if rest:
            self._rest[rank, stream] = rest
        self._write(rank, stream, lines)

    def close(self) -> None:
        """Pass on the lines that have no end."""
        for (rank, stream), rest in self._rest.items():
            self._write(rank, stream, [rest])
        self._rest.clear()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _write(self, rank: int, stream: str, lines: Sequence[bytes]) -> None:
        # Looked up at each write: a notebook or a test replaces them.
        target = self._streams[stream] or (sys.stdout if stream == "stdout" else sys.stderr)
        if target is None or not lines:
            return
        before = f"{time.ctime()}[{rank}]<{stream}>:" if self._with_time else f"[{rank}]<{stream}>:"
        with contextlib.suppress(ValueError, BrokenPipeError):  # it was closed
            target.write("".join(f"{before}{line.decode('utf-8', 'backslashreplace')}\n" for line in lines))
            target.flush()

    def _write_file(self, rank: int, stream: str, data: bytes) -> None:
        assert self._folder is not None
        file = self._files.get((rank, stream))
        if file is None:
            folder = self._folder / f"rank.{rank:0{self._digits}d}"
            folder.mkdir(parents=True, exist_ok=True)
            file = self._files[rank, stream] = (folder / stream).open("ab")
        file.write(data)
        file.flush()


class Following:
    """Passes on what the ranks of an experiment print, while it runs: a callback of `experiment.allreduce`.

    Args:
        ranks: How many there are.
        output: What passes it on.
    """

    def __init__(self, ranks: int, output: RankOutput) -> None:
        self._ranks = ranks
        self._output = output
        self._project: ProjectFolder | None = None
        self._before: set[str] = set()
        self._folder: TrialFolder | None = None
        self._read: dict[Path, int] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="cargobike-rank-output", daemon=True)

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Learn where the output lies, once the experiment has begun."""
        if self._folder is None and self._project is not None:
            ours = (each for each in _ids_in(self._project) - self._before if _is_ours(self._project, each))
            self._folder = next((self._project.experiment(each).trial(0) for each in ours), None)

    def __enter__(self) -> Following:
        self._project = project.prepare()
        self._before = _ids_in(self._project)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()
        self._pass_on()
        self._output.close()

    def _follow(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            self._pass_on()

    def _pass_on(self) -> None:
        if self._folder is None:
            return
        for rank in range(self._ranks):
            for stream in STREAMS:
                path = self._folder.output(stream, rank)
                with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                    file.seek(self._read.get(path, 0))
                    while data := file.read(_AT_ONCE):
                        self._read[path] = file.tell()
                        self._output.take(rank, stream, data)


def _ids_in(folder: ProjectFolder) -> set[str]:
    try:
        return {entry.name for entry in folder.experiments.iterdir()}
    except FileNotFoundError:
        return set()


def _is_ours(folder: ProjectFolder, experiment: str) -> bool:
    """Tell whether this process began an experiment: others may begin some in the same project."""
    try:
        with folder.experiment(experiment).journal.open("rb") as journal:
            head = json.loads(journal.readline())
    except (OSError, ValueError):
        return False
    return bool(head.get("pid") == os.getpid())
