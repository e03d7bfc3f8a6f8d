"""Tags, notes and marks of trials that people add to an experiment afterwards.

A journal is written by its driver alone. What people add later goes into a file beside it, one JSON object per line,
appended under a lock; what is in force are those lines folded.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import time
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.plain_files import read_plain
from cargobike.core.values.kinds import read_text
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.shared import shared_url

LONGEST_TAG: Final = 100
LONGEST_NOTE: Final = 20_000
_PATIENCE_S: Final = 10.0

Mark = Literal["star", "hidden"]
"""What people mark a trial as: worth a second look, or not to be listed or drawn."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One note: when, by whom, what."""

    at: float
    by: str
    text: str


class Annotations(msgspec.Struct, frozen=True, kw_only=True):
    """The tags and notes of an experiment, and the marks of its trials by number."""

    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    marks: dict[int, Mark] = {}

    @property
    def hidden(self) -> frozenset[int]:
        """The numbers of the trials that people do not want to see."""
        return frozenset(number for number, mark in self.marks.items() if mark == "hidden")


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: float
    by: str = ""
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    note: str = ""
    marks: dict[int, Mark | None] = {}


_decoder = msgspec.json.Decoder(_Line)


def read_annotations(folder: ExperimentFolder) -> Annotations:
    """Return the tags, in alphabetical order, and the notes, the oldest first; damaged lines are skipped.

    Raises:
        StoreError: If the file is there and cannot be read.
    """
    try:
        data = read_plain(folder.annotations)
    except FileNotFoundError:
        return Annotations()
    except OSError as error:
        raise StoreError(f"Cannot read {folder.annotations}: {error.strerror}.") from error
    tags: set[str] = set()
    notes = []
    marks: dict[int, Mark | None] = {}
    for text in data.split(b"\n"):
        try:
            line = _decoder.decode(text)
        except UNDECODABLE:
            continue
        tags = (tags | set(line.add)) - set(line.remove)
        marks |= line.marks
        if line.note:
            notes.append(Note(at=line.at, by=line.by, text=line.note))
    in_force = {number: mark for number, mark in sorted(marks.items()) if mark is not None}
    return Annotations(tags=tuple(sorted(tags)), notes=tuple(notes), marks=in_force)


def annotate(
    folder: ExperimentFolder,
    *,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    note: str = "",
    marks: Mapping[int, Mark | None] | None = None,
) -> Annotations:
    """Add or remove tags, add a note, mark trials or take their marks away; returns all that is in force.

    Raises:
        InvalidInputError: If a tag or a note is empty, too long, or holds control characters.
        StoreError: If it cannot be written.
    """
    line = _Line(
        at=time.time(),
        by=_user(),
        add=_checked(add),
        remove=_checked(remove),
        note=_checked_note(note),
        marks=dict(marks or {}),
    )
    if line.add or line.remove or line.note or line.marks:
        try:
            _append(folder, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise StoreError(f"Cannot write to {folder.annotations}: {error.strerror}.") from error
        if shared_url(folder.project):
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
        fcntl.flock(fd, fcntl.LOCK_UN)  # a copy of this process may have it open too
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
    given = tuple(tags)
    for tag in given:
        if not isinstance(tag, str):
            raise InvalidInputError(f'{tag!r} cannot be a tag: give texts, such as "baseline".')
    unique = tuple(dict.fromkeys(given))
    for tag in unique:
        if tag != tag.strip() or not tag or len(tag) > LONGEST_TAG or not tag.isprintable():
            raise InvalidInputError(
                f"{tag!r} cannot be a tag: it must be 1 to {LONGEST_TAG} printable characters, no blanks around them."
            )
    return unique


def _checked_note(note: str) -> str:
    text = read_text("note", note).strip()
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
