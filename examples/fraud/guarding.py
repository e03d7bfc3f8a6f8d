"""Ends what a story has started when the story has ended, however it did: by itself, by Ctrl-C, or by `kill -9`.

A deployment and its watcher are meant to outlive the program that started them, which is what a story does not want.
So a small process waits at the other end of a pipe. The pipe breaks when the story is gone, and then the process stops
what is left. It also holds a lock, so that a folder is used by one story at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WAIT_S = 120.0
_guards: list[subprocess.Popen[str]] = []


@contextlib.contextmanager
def guarded(where: str, delivered: Path, *, keep: bool = False) -> Iterator[None]:
    """Begin with an empty project, and leave nothing running.

    Args:
        where: The project. If it is a folder that an earlier story has left, it is removed.
        delivered: The folder of the bank's files; the same holds for it.
        keep: Whether the deployment and its watcher are to go on.
    """
    lock = _take_lock(delivered)
    try:
        _make_room(where, delivered)
        words = [sys.executable, __file__, where]
        guard = subprocess.Popen(words, stdin=subprocess.PIPE, text=True, pass_fds=[lock], start_new_session=True)
    finally:
        os.close(lock)  # the guard has it, too
    _guards.append(guard)
    try:
        yield
    finally:
        _guards.remove(guard)
        assert guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.write("keep\n" if keep else "")
            guard.stdin.close()
        guard.wait(WAIT_S)


@contextlib.contextmanager
def guarded_process(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Have a process ended here, or with the story if that is killed meanwhile."""
    _tell(f"+{process.pid}")
    try:
        yield
    finally:
        process.terminate()
        process.wait(WAIT_S)
        _tell(f"-{process.pid}")


def main(where: str) -> None:
    """Wait for the end of the story, and clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    words = set(sys.stdin.read().split())
    for pid in (int(word) for word in words if word[0] == "+" and word.replace("+", "-") not in words):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    if "keep" not in words:
        from chapters import stop_everything, use

        use(where)
        stop_everything()


def _tell(word: str) -> None:
    for guard in _guards:
        assert guard.stdin is not None
        guard.stdin.write(f"{word}\n")
        guard.stdin.flush()


def _take_lock(delivered: Path) -> int:
    """Return the open lock file of a folder, once no other story uses it."""
    delivered.mkdir(parents=True, exist_ok=True)
    lock = os.open(delivered / ".story", os.O_RDWR | os.O_CREAT)
    until, is_told = time.monotonic() + WAIT_S, False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(lock)
                sys.exit(f"Another story still uses {delivered}. Choose other folders: --project, --delivered.")
            if not is_told:
                print(f"Another story uses {delivered}; waiting for its end, {WAIT_S:.0f} s at most.", flush=True)
            is_told = True
            time.sleep(0.2)


def _make_room(where: str, delivered: Path) -> None:
    """Remove what an earlier story has left; refuse to remove anything else."""
    marker = delivered / ".project"
    if "://" in where:
        _refuse_if_used(where)
    elif Path(where).exists() and any(Path(where).iterdir()):
        if not marker.exists() or Path(marker.read_text()) != Path(where).absolute():
            sys.exit(f"{where} is there, and not from an earlier story: choose another folder with --project.")
        print(f"{where} is from an earlier story: it is removed, and the story begins anew.", flush=True)
        shutil.rmtree(where)
    others = [path for path in delivered.iterdir() if path.name not in {".story", ".project"}]
    if others and not marker.exists():
        sys.exit(f"{delivered} holds other files: choose another folder with --delivered.")
    for path in others:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    marker.write_text(str(Path(where).absolute()))


def _refuse_if_used(where: str) -> None:
    """A project on a storage may be a team's: nothing is removed there."""
    from chapters import use

    from cargobike import models, pipelines

    use(where)
    if models.list() or pipelines.list():
        sys.exit(f"{where} holds models or runs already: choose another address with --project.")


if __name__ == "__main__":
    main(sys.argv[1])
