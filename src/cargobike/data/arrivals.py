"""Whether data arrived: what sets off a pipeline with `when=data.arrived("s3://bucket/in/*.parquet")`.

A scheduler looks every few seconds, so this lists names only, and needs no library. A file counts when it has not
changed for a while: one that is still being written is left for later.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Seen, Trigger
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.data.tables.addresses import NAME, named, path_of
from cargobike.store.assets.numbering import newest_number
from cargobike.store.files.storage import Entry, Storage
from cargobike.store.files.storages import open_storage
from cargobike.store.history.environment import without_credentials

KIND: Final = "arrived"
SETTLE_S: Final = 5.0
MOST_FILES: Final = 20_000
MOST_NAMED: Final = 1000
"""A cause names so many files; it counts all."""
_TIMEOUT_S: Final = 30.0
_MAGIC: Final = re.compile(r"[*?\[]")
_HASH: Final = 12
_UNFINISHED: Final = (".tmp", ".part", ".partial", ".crdownload", "._COPYING_")


class _Mark(msgspec.Struct, array_like=True):
    """What was seen of a place: its files that counted, in one long text of hashes, and those that may soon."""

    known: str = ""
    fresh: dict[str, float] = {}
    version: int = 0


def arrived(place: str | os.PathLike[str], *, settle: Seconds = SETTLE_S) -> Trigger:
    """Set off a pipeline whenever new files lie somewhere, or a table has a new version.

    The pipeline's cause has `files` (the first 1,000 names) and `count`; of a table it has `table` and `versions`.

    Args:
        place: A glob (`s3://bucket/in/*.parquet`, `in/**/*.csv`), a folder, or the name of a table of the project.
            Names that begin with `.` or `_`, and those of unfinished copies (`.tmp`, `.part`), do not count.
        settle: A file counts when it has not changed for so long.

    Raises:
        InvalidInputError: If it can be none of these, or holds a password.

    Example:
        >>> from cargobike import data
        >>> print(data.arrived("s3://team/in/*.parquet"))
        s3://team/in/*.parquet arrived
    """
    text = os.fspath(place)
    settle_s = read_seconds("settle", settle, may_be_zero=True)
    if not text.strip() or "\0" in text or settle_s is None:
        raise InvalidInputError(f"{place!r} was given; data arrives at a glob, a folder, an address or a table's name.")
    if without_credentials(text) != text:
        raise InvalidInputError(
            f"{without_credentials(text)} was given with a password, which would be kept with the schedule. "
            "Leave it out, and put it where the scheduler's process finds it: the environment, or a file of its user."
        )
    if "://" not in text and "/" not in text and os.sep not in text and not _MAGIC.search(text):
        if not NAME.fullmatch(text):
            raise InvalidInputError(f"{place!r} is no name of a table; write a folder with a slash: './{text}'.")
    elif "://" not in text:
        text = os.path.abspath(os.path.expanduser(text))
    return Trigger(KIND, text, {} if settle_s == SETTLE_S else {"settle_s": settle_s})


def look(trigger: Trigger, mark: str, project: ProjectFolder) -> Seen:
    """Look whether data arrived since a mark.

    Raises:
        StoreError: If the place does not answer, or has more files than can be told apart.
    """
    before = _read(mark)
    if "/" not in trigger.subject:
        return _look_at_table(trigger.subject, named(trigger.subject, project).storage, before)
    base, pattern = _split(trigger.subject)
    storage = _opened(base)
    if not pattern and newest_number(storage, path_of):
        return _look_at_table(trigger.subject, storage, before)
    settle_s = trigger.options.get("settle_s", SETTLE_S)
    return _look_at_files(storage, pattern, before, settle_s if isinstance(settle_s, int | float) else SETTLE_S)


def _look_at_table(name: str, storage: Storage, before: _Mark | None) -> Seen:
    newest = newest_number(storage, path_of, before.version if before is not None else 0)
    mark = _written(_Mark(version=newest))
    if before is None or newest <= before.version:
        return Seen(mark)
    versions = list(range(before.version + 1, newest + 1))[-MOST_NAMED:]
    return Seen(mark, {"table": name, "versions": versions, "version": newest})


def _look_at_files(storage: Storage, pattern: str, before: _Mark | None, settle_s: float) -> Seen:
    now = time.time()
    entries = {_hash(entry): entry.path for entry in _files(storage, pattern)}
    if len(entries) > MOST_FILES:
        raise StoreError(
            f"{storage} has more than {MOST_FILES} such files, too many to tell which are new. "
            "Move away those that were dealt with, or write a narrower glob."
        )
    if before is None:
        return Seen(_written(_Mark("".join(sorted(entries)))))
    known = {before.known[at : at + _HASH] for at in range(0, len(before.known), _HASH)}
    new = [key for key in entries if key not in known]
    # A clock that was set back makes a file wait anew, not for ever.
    fresh = {key: min(before.fresh.get(key, now), now) for key in new}
    settled = [key for key in new if now - fresh[key] >= settle_s and (key in before.fresh or settle_s == 0)]
    left = {key: at for key, at in fresh.items() if key not in set(settled)}
    mark = _written(_Mark("".join(sorted(key for key in entries if key in known or key in set(settled))), left))
    if not settled:
        return Seen(mark)
    names = sorted(entries[key] for key in settled)
    shown = [f"{without_credentials(storage.url)}/{name}" for name in names[:MOST_NAMED]]
    return Seen(mark, {"files": shown, "count": len(names)})


def _files(storage: Storage, pattern: str) -> Iterator[Entry]:
    """Yield the files that count."""
    is_wanted = _matcher(pattern)
    for entry in storage.list(deep="/" in pattern or "**" in pattern or not pattern):
        names = entry.path.split("/")
        is_hidden = any(name.startswith((".", "_")) for name in names) or names[-1].endswith(_UNFINISHED)
        if not is_hidden and is_wanted(entry.path):
            yield entry


@functools.lru_cache(maxsize=256)
def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a path matches a glob, in which `*` stays in one folder and `**` does not."""
    if not pattern:
        return lambda path: True
    text = ""
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|.", pattern, re.DOTALL):
        if part == "**/":
            text += "(?:[^/]+/)*"
        elif part.startswith("*"):
            text += ".*" if part == "**" else "[^/]*"
        elif part == "?":
            text += "[^/]"
        elif part.startswith("[") and len(part) > 2:
            inner = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            text += f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
        else:
            text += re.escape(part)
    try:
        compiled = re.compile(text)
    except re.error as error:
        raise StoreError(f"The glob {pattern!r} cannot be understood: {error}.") from error
    return lambda path: compiled.fullmatch(path) is not None


def _split(place: str) -> tuple[str, str]:
    """Return the folder in which a place begins, and the glob below it; empty without one."""
    magic = _MAGIC.search(place, place.find("://") + 3 if "://" in place else 0)
    if magic is None:
        return place.rstrip("/"), ""
    base = place[: magic.start()].rpartition("/")[0]
    return base, place[len(base) + 1 :]


@functools.lru_cache(maxsize=64)
def _opened(base: str) -> Storage:
    return open_storage(base, timeout_s=_TIMEOUT_S)


def _hash(entry: Entry) -> str:
    text = f"{entry.path}\0{entry.size}\0{entry.token}".encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=_HASH // 2).hexdigest()


def _written(mark: _Mark) -> str:
    return msgspec.json.encode(mark).decode()


def _read(mark: str) -> _Mark | None:
    try:
        return msgspec.json.decode(mark, type=_Mark) if mark else None
    except UNDECODABLE:
        return None
