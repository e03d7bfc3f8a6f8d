"""Journals: facts, one JSON object per line, only ever appended to.

A journal does not depend on a product; its reader says which facts it may hold (`Facts`).

Each line is what `encode_fact` makes of a fact with one more key at its end, `"crc"`: eight hexadecimal
digits of the CRC-32 of all bytes before `,"crc"`. A line counts once it is whole: newline there, checksum
right. Anything after the last whole line is a torn tail, left by a writer that died, and is dropped.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Generic, Literal, overload
from zlib import crc32

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.facts import Fact, Facts, First, T, encode_fact

Durability = Literal["process", "power"]

SYNC_INTERVAL_S: Final = 1.0
_CHUNK_BYTES: Final = 1 << 20
_SEAL_KEY: Final = b',"crc":"'
_SEAL_BYTES: Final = len(_SEAL_KEY) + 8 + len(b'"}')
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
        self._synced_at_s = 0.0
        self._torn = False
        self._failure: OSError | None = None
        self._syncing: threading.Thread | None = None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._size = _end_of_facts(self.path, start_at or 0)
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
        data = b"".join([seal(fact) for fact in facts])
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            self._torn = True
            self._cut_tail()
            raise self._write_error(error) from error
        self._size += len(data)
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
        """
        if not self._dirty or now_s - self._synced_at_s < SYNC_INTERVAL_S:
            return
        if self._syncing is not None and self._syncing.is_alive():
            return
        self._synced_at_s = now_s
        self._dirty = False
        self._syncing = threading.Thread(target=self._sync_behind, name="cargobike-journal-sync", daemon=True)
        self._syncing.start()

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
    """

    def __init__(self, path: Path | str, facts: Facts[T, Any], offset: int = 0) -> None:
        self.path = Path(path)
        self._facts = facts
        self.offset = offset

    def read_new(self, max_bytes: int | None = None) -> list[T]:
        """Return the facts appended since the last call; an empty list means that there are none yet.

        Args:
            max_bytes: Stop after about so many bytes; the next call goes on from there.

        Raises:
            StoreError: At a line in the middle that is damaged, or written by a newer Cargobike. Facts before
                that line are returned first; the next call raises.
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
                decode = self._facts.decode
                facts = [decode(line) for line in lines]
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
            else:
                self.offset = end
                return facts
        for line in lines:
            before.append(_decode(line, self._facts, self.path, self.offset))
            self.offset += len(line) + 1
        return []


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
        StoreError: If there is no journal, a line in the middle is damaged, or a newer Cargobike wrote it.
    """
    offset = 0
    for lines, _ in intact_lines(Path(path)):
        facts = facts or _facts_of(lines[0], Path(path))
        for line in lines:
            yield _decode(line, facts, Path(path), offset)
            offset += len(line) + 1


def read_header(path: Path | str, facts: Facts[Any, First]) -> First | None:
    """Return the first fact of a journal, `None` if it is not there (yet) or cannot be read."""
    try:
        with Path(path).open("rb") as file:
            line = file.readline()
        if not line.endswith(b"\n") or not is_intact(line[:-1]):
            return None
        fact = _decode(line[:-1], facts, Path(path), 0)
    except OSError:
        return None
    return fact if isinstance(fact, facts.first) else None


def intact_lines(path: Path, offset: int = 0) -> Iterator[tuple[list[bytes], int]]:
    """Yield the whole lines of a journal in large lists, each with the offset that follows it, undecoded.

    Ends before a torn tail. Lines that are damaged count as a torn tail if no whole line follows.

    Raises:
        StoreError: If a whole line follows a damaged one, or the journal is shorter than `offset`.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise StoreError(f"Cannot read the journal {path}: {error.strerror}.") from error
    with file:
        if os.fstat(file.fileno()).st_size < offset:
            raise StoreError(f"Journal {path} is shorter than it was ({offset} bytes read); read it anew.")
        file.seek(offset)
        rest = b""
        while block := file.read(_CHUNK_BYTES):
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            bad = next((i for i, line in enumerate(lines) if not is_intact(line)), None)
            good = lines if bad is None else lines[:bad]
            if good:
                offset += sum(map(len, good)) + len(good)
                yield good, offset
            if bad is None:
                continue
            if any(map(is_intact, lines[bad + 1 :])) or any(is_intact(line.rstrip(b"\n")) for line in file):
                number = _line_number(path, offset)
                raise StoreError(
                    f"{path}, line {number}: damaged (its checksum is wrong), with whole lines after it. "
                    f"Restore the file from a copy, or keep what precedes: "
                    f"head -n {number - 1} journal.jsonl > repaired.jsonl."
                )
            return


def seal(fact: Fact) -> bytes:
    """Encode a fact as a line of a journal: JSON object with its checksum, and a newline."""
    try:
        body = encode_fact(fact)[:-1]
    except UnicodeEncodeError:
        body = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(fact, enc_hook=str)))[:-1]
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def is_intact(line: bytes) -> bool:
    """Tell whether a line (without its newline) carries its right checksum."""
    if line[-_SEAL_BYTES:-10] != _SEAL_KEY or line[-2:] != b'"}':
        return False
    return line[-10:-2] == b"%08x" % crc32(line[:-_SEAL_BYTES])


def _without_surrogates(value: Any) -> Any:
    """Replace what UTF-8 cannot hold: output of user code may carry any bytes, a journal may not."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value


def _facts_of(first_line: bytes, path: Path) -> Facts[Any, Any]:
    """Find the product whose journals begin with such a line."""
    # Only for readers that do not know what they read; a driver must not wait for it.
    from cargobike.core.registering.products import load, products  # noqa: PLC0415

    for product in products():
        if not product.kind:
            continue
        facts: Facts[Any, Any] = load(product.kind).facts
        try:
            if isinstance(facts.decode(first_line), facts.first):
                return facts
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    raise StoreError(f"{path} is not a journal of a product that is installed here.")


def _decode(line: bytes, facts: Facts[T, Any], path: Path, offset: int) -> T:
    try:
        fact = facts.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        number = _line_number(path, offset)
        raise StoreError(
            f"{path}, line {number}: written by a newer Cargobike ({error}). "
            "Read it with that version, or upgrade this one."
        ) from error
    if isinstance(fact, facts.first) and fact.version > facts.version:
        raise StoreError(
            f"{path}: written by a newer Cargobike {fact.cargobike} (journal version {fact.version}; "
            f"this one reads up to {facts.version}). Upgrade: pip install --upgrade cargobike."
        )
    return fact


def _line_number(path: Path, offset: int) -> int:
    """Count lines only when an error has to name one."""
    with path.open("rb") as file:
        return file.read(offset).count(b"\n") + 1


def _end_of_facts(path: Path, start_at: int) -> int:
    return max((end for _, end in intact_lines(path, start_at)), default=start_at)
