"""The commands that a server runs for callers: how many at once, the files of each, and when one is given up.

Names of commands cannot be guessed, so that only the caller who started one reads its output. A command whose caller
does not read any more is interrupted; files that callers sent are removed with it, unless what was made needs them.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from cargobike.core.errors import InvalidInputError, NotFoundError, ServerRefusedError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.afar import RoleName
from cargobike.remote.commands.process import CommandProcess
from cargobike.remote.commands.rules import MADE, SENT, allowed

MOST_COMMANDS: Final = 16
MOST_FILES: Final = 10_000
MOST_BYTES: Final = 4 << 30
PATIENCE_S: Final = 60.0
"""How long nobody may read the output of a command before it is interrupted."""
_KEPT_S: Final = 300.0
_LOOK_S: Final = 1.0
_NAME: Final = re.compile(r"[\w.@+=, ()\[\]-]{1,200}")
_FOLDER: Final = "uploads"


@dataclass(slots=True)
class Call:
    """One command of a caller: first its files, then its process."""

    id: str
    folder: Path
    role: RoleName
    detached: bool = False
    keeps: bool = False
    process: CommandProcess | None = None
    num_files: int = 0
    num_bytes: int = 0
    touched_at: float = field(default_factory=time.monotonic)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return self.process is None or self.process.has_ended


class Desk:
    """The commands of one server. Guarantees: at most `MOST_COMMANDS` at once, and none after `close`."""

    def __init__(self, project: ProjectFolder, *, patience_s: float = PATIENCE_S) -> None:
        self._project = project
        self._patience_s = patience_s
        self._calls: dict[str, Call] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._keeper: threading.Thread | None = None

    def prepare(self, role: RoleName) -> Call:
        """Open a call, for files to be sent before the command starts.

        Raises:
            ServerRefusedError: If too many commands run.
        """
        with self._lock:
            if self._closing.is_set():
                raise ServerRefusedError("The server is about to end.")
            if len(self._calls) >= MOST_COMMANDS and not self._drop_one_ended():
                raise ServerRefusedError(f"This server runs {MOST_COMMANDS} commands already; try again later.")
            name = secrets.token_urlsafe(18)
            folder = self._project.root / _FOLDER / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
            for inner in (SENT, MADE):
                (folder / inner).mkdir(parents=True, mode=0o700)
            call = self._calls[name] = Call(name, folder, role)
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="remote-desk", daemon=True)
                self._keeper.start()
            return call

    def find(self, name: str) -> Call:
        """Return a call; raises `NotFoundError` if there is none."""
        call = self._calls.get(name)
        if call is None:
            raise NotFoundError("There is no such command, or it ended some time ago.", wanted=name)
        call.touched_at = time.monotonic()
        return call

    def receive(self, name: str, path: str, content: bytes, offset: int) -> int:
        """Write a piece of a file that a caller sends; returns how long the file is then.

        Raises:
            InvalidInputError: If the path is not plain, the piece is not the next one, or there is too much.
        """
        call, parts = self.find(name), PurePosixPath(path).parts
        if call.process is not None:
            raise InvalidInputError("The command has started; files are sent before.")
        if not parts or len(parts) > 20 or any(part in {".", ".."} or not _NAME.fullmatch(part) for part in parts):
            raise InvalidInputError(
                f"{path!r} cannot be sent: a path is relative, of letters, digits, blanks and . _ - + = @ , ( ) [ ]"
            )
        if call.num_files + (offset == 0) > MOST_FILES or call.num_bytes + len(content) > MOST_BYTES:
            raise InvalidInputError(
                f"At most {MOST_FILES} files and {MOST_BYTES >> 30} GiB can be sent with a command."
            )
        target = call.folder / SENT / Path(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if offset == 0 else 0)
        try:
            descriptor = os.open(target, flags, 0o600)
        except OSError as error:
            raise InvalidInputError(f"{path!r} cannot be written: {error.strerror}.") from error
        with os.fdopen(descriptor, "r+b" if offset else "wb") as file:
            if file.seek(0, os.SEEK_END) != offset:
                raise InvalidInputError(f"{path!r} goes on at {file.tell()}, not at {offset}.")
            file.write(content)
        call.num_files += offset == 0
        call.num_bytes += len(content)
        return offset + len(content)

    def start(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        detached: bool = False,
        columns: int = 0,
        known: Collection[str] = (),
    ) -> Call:
        """Start the command of a call, if its caller may do that; see `rules.allowed`."""
        call = self.find(name)
        if call.process is not None:
            raise InvalidInputError("The command has started already.")
        checked = allowed(arguments, call.role, known)
        call.detached, call.keeps = detached, checked.afar.keeps
        with self._lock:
            if self._closing.is_set():
                raise ServerRefusedError("The server is about to end.")
            call.process = CommandProcess(
                checked.arguments, project=self._project.root, folder=call.folder, columns=columns
            )
        return call

    def made(self, name: str) -> list[tuple[str, int]]:
        """Return the files that a command wrote for its caller, with their sizes; links are left out."""
        return sorted(_files_below(self.find(name).folder / MADE))

    def close(self) -> None:
        """Interrupt all commands, and wait until they have ended."""
        self._closing.set()
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            if call.process is not None:
                call.process.cancel()
        for call in calls:
            self._drop(call)
        if self._keeper is not None:
            self._keeper.join(5)

    def _keep(self) -> None:
        """Interrupt what is not read any more, and forget what has ended."""
        while not self._closing.wait(_LOOK_S):
            now = time.monotonic()
            for call in list(self._calls.values()):
                process = call.process
                if process is not None and not process.has_ended:
                    if now - process.read_at > self._patience_s and not call.detached:
                        process.cancel()
                elif now - max(call.touched_at, process.read_at if process else 0) > _KEPT_S:
                    self._drop(call)

    def _drop_one_ended(self) -> bool:
        ended = [call for call in self._calls.values() if call.process is not None and call.process.has_ended]
        if not ended:
            return False
        self._drop(min(ended, key=lambda call: call.touched_at))
        return True

    def _drop(self, call: Call) -> None:
        if call.process is not None:
            call.process.close()
        self._calls.pop(call.id, None)
        if call.keeps and call.num_files:
            shutil.rmtree(call.folder / MADE, ignore_errors=True)
        else:
            shutil.rmtree(call.folder, ignore_errors=True)


def _files_below(root: Path) -> Iterator[tuple[str, int]]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(root).as_posix(), path.stat().st_size
