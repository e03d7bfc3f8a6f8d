"""Files that a command on another machine needs from here, and those that it writes for here."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cargobike.core.errors import InvalidInputError
from cargobike.core.plain_files import open_plain
from cargobike.remote.answers import FileMade, FileReceived
from cargobike.remote.asking.connection import Connection

_PIECE: Final = 45_000
"""As Base64 in JSON it stays below what a server takes in one request."""


class Sending(NamedTuple):
    """A file or folder here, and what it is called there."""

    source: Path
    name: str


def find_file(text: str) -> tuple[Path, str] | None:
    """Return the file or folder here that a text names, and what follows it (`:function`); `None` if there is none."""
    before, colon, name = text.rpartition(":")
    for path, rest in ((text, ""), (before, colon + name)):
        if path and "://" not in path and (found := Path(path).expanduser()).exists():
            return found, rest
    return None


def send(connection: Connection, call: str, sendings: Sequence[Sending]) -> None:
    """Send files and folders to a call, piece by piece."""
    for sending in sendings:
        for file, name in _files(sending):
            _send_file(connection, call, file, name)


def bring(connection: Connection, call: str, made: Sequence[FileMade], targets: dict[str, Path]) -> list[Path]:
    """Bring what a command wrote to where the caller wanted it; returns what was written here.

    Args:
        connection: The server.
        call: The command.
        made: What it wrote.
        targets: Where each file or folder that it was to write belongs, by the first part of its path there.
    """
    written = []
    for file in made:
        first, _, rest = file.path.partition("/")
        if first not in targets or any(part in {"", ".", ".."} for part in rest.split("/") if rest):
            continue
        target = targets[first] / rest if rest else targets[first]
        target.parent.mkdir(parents=True, exist_ok=True)
        _bring_file(connection, call, file, target)
        written.append(target)
    return written


def _files(sending: Sending) -> Iterator[tuple[Path, str]]:
    if sending.source.is_file():
        yield sending.source, sending.name
        return
    for folder, names, files in os.walk(sending.source):
        names[:] = sorted(name for name in names if not name.startswith(".") and name != "__pycache__")
        for name in sorted(files):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file():
                yield path, f"{sending.name}/{path.relative_to(sending.source).as_posix()}"


def _send_file(connection: Connection, call: str, source: Path, name: str) -> None:
    try:
        file = open_plain(source)
    except OSError as error:
        raise InvalidInputError(f"{source} cannot be sent: {error.strerror}.") from error
    offset = 0
    with file:
        while (piece := file.read(_PIECE)) or offset == 0:
            body = {"path": name, "content": base64.b64encode(piece).decode(), "offset": offset}
            offset = connection.post(["commands", "calls", call, "files"], FileReceived, body).size_bytes
            if not piece:
                return


def _bring_file(connection: Connection, call: str, file: FileMade, target: Path) -> None:
    """Write a file beside its place first, so that what was there stays whole if the connection breaks."""
    descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            while out.tell() < file.size_bytes:
                part = connection.read(["commands", call, "file"], {"path": file.path, "offset": out.tell()})
                if not part:
                    raise InvalidInputError(f"{file.path} changed while it was brought; try again.")
                out.write(part)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(aside, 0o666 & ~mask)
        os.replace(aside, target)
    except BaseException:
        os.unlink(aside)
        raise
