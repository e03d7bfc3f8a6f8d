"""Journals: facts, one JSON object per line, only ever appended to.

A journal does not depend on a product; its reader says which facts it may hold (`Facts`). What a line looks like is in
`lines.py`. A line counts once it is whole: newline there, checksum right. Anything after the last whole line is a torn
tail, left by a writer that died, and is dropped.
"""

from __future__ import annotations

import errno
import math
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Generic, Literal, overload

from cargobike.core.errors import StoreError
from cargobike.core.facts import Fact, Facts, First, T
from cargobike.core.plain_files import open_plain
from cargobike.core.registering.lazy import load
from cargobike.core.values.kinds import read_path
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.journal.lines import intact_lines, is_intact, line_number, link_at, seal_all

Durability = Literal["process", "power"]

SYNC_INTERVAL_S: Final = 1.0
_CRC_FROM_THE_END: Final = len('01234567"}\n')
_LONGEST_HEADER: Final = 256 << 20
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

# macOS has no fdatasync; fsync does the same and a little more.
_flush_to_disk = getattr(os, "fdatasync", os.fsync)


class JournalWriter:
    """Appends facts to a journal; there is one writer for each journal, such as the driver that holds its lock.

    Guarantees: `append` writes its facts whole and in order, or raises `StoreError` and leaves the journal as
    it was, so that the same facts can be appended again. When `append` has returned, the facts survive `kill
    -9` of this process; with `durability="power"` also a power cut. With `"process"` a power cut can cost
    what was appended in the last second or so, provided that `sync_if_due` is called now and then.

    Opening an existing journal cuts off a torn tail. `start_at` is an offset up to which the caller has read
    the journal (`JournalReader.offset`), so that only what follows is looked at.
    """

    def __init__(self, path: Path | str, *, durability: Durability = "process", start_at: int | None = None) -> None:
        self.path = Path(path)
        self.durability = durability
        self._dirty = False
        self._synced_at_s = self._looked_at_s = -math.inf
        self._torn = False
        self._failure: OSError | None = None
        self._syncing: threading.Thread | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._write_error(error) from error
        try:
            self._size = max((end for _, end in intact_lines(self.path, start_at or 0)), default=start_at or 0)
            self._link = link_at(self.path, self._size)
            if os.fstat(self._fd).st_size > self._size:
                os.ftruncate(self._fd, self._size)
            if durability == "power":
                self._sync_folders()
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def offset(self) -> int:
        """Bytes in the journal, all of them whole lines."""
        return self._size

    def append(self, facts: Sequence[Fact], *, settle: bool = True) -> None:
        """Append facts with one write, and in `"power"` mode one flush to disk, however many they are.

        Without `settle` the flush is left to the next `settle()`, for facts that nothing follows from yet.
        """
        if not facts:
            return
        if self._failure is not None or self._torn:
            self._recover()
        data, link = seal_all(facts, self._link)
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            self._torn = True
            self._cut_tail()
            raise self._write_error(error) from error
        self._size += len(data)
        self._link = link
        self._dirty = True
        if settle:
            self.settle()

    @property
    def is_settled(self) -> bool:
        """Whether everything appended is as durable as was asked for."""
        return self.durability == "process" or not self._dirty

    def settle(self) -> None:
        """Make everything appended as durable as was asked for."""
        if not self.is_settled:
            self.sync()

    def sync(self) -> None:
        """Flush everything appended so far to disk."""
        try:
            _flush_to_disk(self._fd)
        except OSError as error:
            # After a failed flush the kernel may forget which pages were dirty: a second one that
            # succeeds would prove nothing, so this writer is finished.
            self._failure = error
            raise self._write_error(error) from error
        self._dirty = False

    def sync_if_due(self, now_s: float) -> None:
        """Flush to disk in the background if something was appended and the last flush is a second ago.

        In the background, because a flush waits for everything else the disk is busy with, such as checkpoints.

        Raises:
            StoreError: If the journal is not there any more (`check_place`), which is looked at once a second.
        """
        if now_s - self._looked_at_s >= SYNC_INTERVAL_S:
            self._looked_at_s = now_s
            self.check_place()
        if not self._dirty or now_s - self._synced_at_s < SYNC_INTERVAL_S:
            return
        if self._syncing is not None and self._syncing.is_alive():
            return
        self._synced_at_s = now_s
        self._dirty = False
        self._syncing = threading.Thread(target=self._sync_behind, name="cargobike-journal-sync", daemon=True)
        self._syncing.start()

    def check_place(self) -> None:
        """Make sure that what is appended goes where readers look for it.

        Raises:
            StoreError: If the journal, or the folder that it lies in, was deleted, moved or replaced meanwhile.
        """
        try:
            ours = os.fstat(self._fd)
            there = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            happened = "deleted or moved"
        except OSError as error:
            if error.errno != errno.ESTALE:  # of a network disk: another host deleted it
                return
            happened = "deleted"
        else:
            # Some file systems in user space number a file anew from time to time: a number alone says nothing.
            is_ours = bool(ours.st_nlink) and (os.path.samestat(ours, there) or there.st_size >= self._size)
            happened = self._changed(ours.st_size) if is_ours else "replaced by another"
            if not happened:
                return
        raise StoreError(
            f"The journal {self.path} was {happened} while it was being written, and so was perhaps all of "
            f"{self.path.parent}. What has been recorded since is not kept there; put the folder back and resume, or "
            "start anew."
        )

    def _changed(self, size: int) -> str:
        """Return what another program did to the content; empty if it is what was written."""
        if size < self._size:
            return "cut short by another program"
        if self._torn:
            return ""  # what is too much is ours, and could not be cut off yet
        if size > self._size:
            return "written to by another program"
        crc = os.pread(self._fd, 8, size - _CRC_FROM_THE_END) if size else self._link.crc
        return "" if crc == self._link.crc else "changed by another program"

    def close(self) -> None:
        """Flush and close; may be called twice."""
        if self._fd < 0:
            return
        try:
            if self._syncing is not None:
                self._syncing.join()
            if self._dirty:
                self.sync()
        finally:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _sync_behind(self) -> None:
        try:
            _flush_to_disk(self._fd)
        except OSError as error:
            self._failure = error

    def _sync_folders(self) -> None:
        """Make the names durable too: a flushed file without a folder entry is lost all the same."""
        for folder in list(self.path.parents)[:3]:
            fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _recover(self) -> None:
        if self._failure is not None:
            raise self._write_error(self._failure) from self._failure
        self._cut_tail()
        if self._torn:
            raise StoreError(f"Journal {self.path} has a torn tail that could not be cut off; is the disk still there?")

    def _cut_tail(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return  # stays torn: the next append tries again, a reader drops the tail
        self._torn = False

    def _write_error(self, error: OSError) -> StoreError:
        if error.errno in _FULL:
            advice = (
                f"there is no room left ({error.strerror}). Free some space, perhaps with `cargobike rm`, "
                "and resume; everything recorded until now is safe"
            )
        else:
            advice = f"{error.strerror}. Everything recorded until now is safe; check the disk and resume"
        return StoreError(f"Cannot write to the journal {self.path}: {advice}.")


class JournalReader(Generic[T]):
    """Reads a journal piece by piece, also while it is being written.

    `offset` is where the next read begins, always the start of a line; it may be set to what an earlier
    reader of the same journal ended with.

    Args:
        path: The journal.
        facts: The facts that it may hold.
        offset: Where to begin.
        of: The id of the thing that it must be the journal of; empty for any.
    """

    def __init__(self, path: Path | str, facts: Facts[T, Any], offset: int = 0, *, of: str = "") -> None:
        self.path = Path(path)
        self._facts = facts
        self._of = of
        self.offset = offset

    def read_new(self, max_bytes: int | None = None) -> list[T]:
        """Return the facts appended since the last call; an empty list means that there are none yet.

        Args:
            max_bytes: Stop after about so many bytes; the next call goes on from there.

        Raises:
            StoreError: At a line in the middle that is damaged, does not follow the one before it, or was written by
                a newer Cargobike. Facts before that line are returned first; the next call raises.
        """
        start, facts = self.offset, list[T]()
        try:
            for lines, end in intact_lines(self.path, self.offset):
                facts += self._decoded(lines, end, facts)
                if max_bytes is not None and self.offset - start >= max_bytes:
                    break
        except StoreError:
            if not facts:
                raise
        return facts

    def _decoded(self, lines: list[bytes], end: int, before: list[T]) -> list[T]:
        """Decode many lines at once; one by one only at the beginning, or to find the one that cannot be decoded."""
        if self.offset:
            try:
                facts = self._facts.decode_all(lines)
            except UNDECODABLE:
                pass
            else:
                self.offset = end
                return facts
        for line in lines:
            fact = _decode(line, self._facts, self.path, self.offset)
            if not self.offset and self._of:
                self._check_owner(fact)
            before.append(fact)
            self.offset += len(line) + 1
        return []

    def _check_owner(self, first: T) -> None:
        owner = getattr(first, "id", self._of)
        if owner != self._of:
            raise StoreError(
                f"{self.path} is the journal of {owner}, not of {self._of}: was it copied here, or its folder renamed? "
                f"Give the folder the name {owner}, or put the journal of {self._of} back."
            )


@overload
def read_journal(path: Path | str, facts: Facts[T, Any]) -> Iterator[T]: ...
@overload
def read_journal(path: Path | str) -> Iterator[Any]: ...
def read_journal(path: Path | str, facts: Facts[Any, Any] | None = None) -> Iterator[Any]:
    """Yield all facts of a journal in order, dropping a torn tail.

    Args:
        path: The journal.
        facts: The facts that it may hold; without them they are those of the product whose journals begin as it does.

    Raises:
        StoreError: If there is no journal, a line is damaged or does not follow the one before it, or a newer Cargobike
            wrote it.
    """
    offset = 0
    for lines, _ in intact_lines(Path(read_path("path", path))):
        facts = facts or _facts_of(lines[0], Path(path))
        for line in lines:
            yield _decode(line, facts, Path(path), offset)
            offset += len(line) + 1


def read_header(path: Path | str, facts: Facts[Any, First]) -> First | None:
    """Return the first fact of a journal, `None` if it is not there (yet) or cannot be read."""
    try:
        with open_plain(path) as file:
            line = file.readline(_LONGEST_HEADER)
        if not line.endswith(b"\n") or not is_intact(line[:-1]):
            return None
        fact = _decode(line[:-1], facts, Path(path), 0)
    except OSError:
        return None
    return fact if isinstance(fact, facts.first) else None


def _facts_of(first_line: bytes, path: Path) -> Facts[Any, Any]:
    """Find the product whose journals begin with such a line."""
    # Only for readers that do not know what they read; a driver must not wait for it.
    from cargobike.core.registering.products import products  # noqa: PLC0415

    for product in products():
        if not product.kind:
            continue
        facts: Facts[Any, Any] = load(product.kind).facts
        try:
            if isinstance(facts.decode(first_line), facts.first):
                return facts
        except UNDECODABLE:
            continue
    raise StoreError(f"{path} is not a journal of a product that is installed here.")


def _decode(line: bytes, facts: Facts[T, Any], path: Path, offset: int) -> T:
    try:
        fact = facts.decode(line)
    except UNDECODABLE as error:
        number = line_number(path, offset)
        raise StoreError(
            f"{path}, line {number}: written by a newer Cargobike ({error}), or by another program. "
            "Read it with that version, or upgrade this one."
        ) from error
    if isinstance(fact, facts.first) and fact.version > facts.version:
        raise StoreError(
            f"{path}: written by a newer Cargobike {fact.cargobike} (journal version {fact.version}; "
            f"this one reads up to {facts.version}). Upgrade: pip install --upgrade cargobike."
        )
    return fact
