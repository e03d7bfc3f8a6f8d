"""What git knows about the folder that an experiment was launched from."""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from cargobike.store.history.environment import without_credentials

MOST_DIFF_BYTES: Final = 1 << 20
_TIMEOUT_S: Final = 10.0


class GitState(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that was checked out, and how the files differed from it.

    Attributes:
        root: Top folder of the repository.
        changed: Files that differed from the commit or were unknown to it, relative to `root`.
        diff_is_cut: Whether the kept diff ends early because it was too long.
    """

    root: str
    commit: str = ""
    branch: str = ""
    remote: str = ""
    changed: tuple[str, ...] = ()
    diff_is_cut: bool = False

    @property
    def is_dirty(self) -> bool:
        """Whether anything was not committed."""
        return bool(self.changed)


def read_git(folder: Path) -> tuple[GitState, bytes] | None:
    """Return the state of the repository around a folder and its uncommitted diff; `None` if there is no repository."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return None
    root = Path(os.fsdecode(top.rstrip(b"\n")))
    commit = _text(root, "rev-parse", "--verify", "--quiet", "HEAD")
    # Paths of an index or work tree may be anything but NUL; quoting would have to be undone.
    status = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all") or b""
    changed = tuple(os.fsdecode(entry[3:]) for entry in status.split(b"\0") if len(entry) > 3)
    diff = b""
    if commit and changed:
        diff = _git(root, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "HEAD") or b""
    state = GitState(
        root=str(root),
        commit=commit,
        branch=_text(root, "rev-parse", "--abbrev-ref", "HEAD") if commit else "",
        remote=without_credentials(_text(root, "config", "--get", "remote.origin.url")),
        changed=tuple(name.encode("utf-8", "replace").decode() for name in changed[:1000]),
        diff_is_cut=len(diff) > MOST_DIFF_BYTES,
    )
    return state, diff[:MOST_DIFF_BYTES]


def known_files(root: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of a repository that git tracks or would track: none that it ignores."""
    patterns = [f"*{suffix}" for suffix in suffixes]
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns) or b""
    return [root / os.fsdecode(name) for name in dict.fromkeys(listed.split(b"\0")) if name]


def _text(folder: Path, *arguments: str) -> str:
    return (_git(folder, *arguments) or b"").decode("utf-8", "replace").strip()


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Ask git; `None` if it is not there, refuses or takes too long."""
    program = shutil.which("git")
    if program is None:
        return None
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    variables = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    # Not by pipes, which `subprocess` uses even without output: a copy of this process that another thread forks
    # meanwhile holds them open, and they would be waited for as long as the copy lives.
    with tempfile.TemporaryFile() as answer:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, answer.fileno(), 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            # In a session of its own: a Ctrl-C goes to the experiment only.
            pid = os.posix_spawn(program, command, variables, file_actions=actions, setsid=True)
        except OSError:
            return None
        if _exit_code(pid) != 0:
            return None
        answer.seek(0)
        return answer.read()


def _exit_code(pid: int) -> int:
    """Wait for the end of a process, which is ended if it takes too long."""
    handle = os.pidfd_open(pid)
    try:
        if not select.select([handle], [], [], _TIMEOUT_S)[0]:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
