"""Tags and notes that people add to an experiment afterwards.

A journal is written by its driver alone. What people add later goes into a file beside it, one JSON object per line,
appended under a lock; tags and notes are those lines folded.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import time
from collections.abc import Iterable
from typing import Final

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ExperimentFolder

LONGEST_TAG: Final = 100
LONGEST_NOTE: Final = 20_000
_PATIENCE_S: Final = 10.0


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One note: when, by whom, what."""

    at: float
    by: str
    text: str


class Annotations(msgspec.Struct, frozen=True, kw_only=True):
    """The tags and notes of an experiment."""

    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: float
    by: str = ""
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    note: str = ""


_decoder = msgspec.json.Decoder(_Line)


def read_annotations(folder: ExperimentFolder) -> Annotations:
    """Return the tags, in alphabetical order, and the notes, the oldest first; damaged lines are skipped.

    Raises:
        StoreError: If the file is there and cannot be read.
    """
    try:
        data = folder.annotations.read_bytes()
    except FileNotFoundError:
        return Annotations()
    except OSError as error:
        raise StoreError(f"Cannot read {folder.annotations}: {error.strerror}.") from error
    tags: set[str] = set()
    notes = []
    for text in data.split(b"\n"):
        try:
            line = _decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        tags = (tags | set(line.add)) - set(line.remove)
        if line.note:
            notes.append(Note(at=line.at, by=line.by, text=line.note))
    return Annotations(tags=tuple(sorted(tags)), notes=tuple(notes))


def annotate(
    folder: ExperimentFolder, *, add: Iterable[str] = (), remove: Iterable[str] = (), note: str = ""
) -> Annotations:
    """Add or remove tags, add a note; returns all tags and notes.

    Raises:
        InvalidInputError: If a tag or a note is empty, too long, or holds control characters.
        StoreError: If it cannot be written.
    """
    line = _Line(at=time.time(), by=_user(), add=_checked(add), remove=_checked(remove), note=_checked_note(note))
    if line.add or line.remove or line.note:
        try:
            _append(folder, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise StoreError(f"Cannot write to {folder.annotations}: {error.strerror}.") from error
        if folder.project.remote_url.exists():
            from cargobike.store.files.mirror import share_annotations  # noqa: PLC0415 - only for shared storage

            share_annotations(folder)
    return read_annotations(folder)


def _append(folder: ExperimentFolder, data: bytes) -> None:
    fd = os.open(folder.annotations, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        _lock(fd, folder)
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # a writer died in the middle of a line
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _lock(fd: int, folder: ExperimentFolder) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                raise StoreError(
                    f"{folder.annotations} has been locked by another process for {_PATIENCE_S:g} s."
                ) from None
            time.sleep(0.01)
        else:
            return


def _checked(tags: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise InvalidInputError(f"Tags are given as a list, not as the text {tags!r}; write [{tags!r}].")
    unique = tuple(dict.fromkeys(tags))
    for tag in unique:
        if tag != tag.strip() or not tag or len(tag) > LONGEST_TAG or not tag.isprintable():
            raise InvalidInputError(
                f"{tag!r} cannot be a tag: it must be 1 to {LONGEST_TAG} printable characters, no blanks around them."
            )
    return unique


def _checked_note(note: str) -> str:
    text = note.strip()
    if len(text) > LONGEST_NOTE:
        raise InvalidInputError(
            f"The note has {len(text)} characters, and {LONGEST_NOTE} are allowed; keep longer texts in a file."
        )
    return text.encode("utf-8", "backslashreplace").decode()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
