"""Reads the headers of tar files, forwards only, and puts members together to samples.

Python's `tarfile` opens one member after the other by seeking; here a stretch of the file is read in one go, and names
and sizes are checked as those of a stranger's file. Nothing is ever written to a path that a tar names.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from cargobike.data.sources.ranges import Forward

_BLOCK = 512
_LONGEST_NAME = 1 << 16
_LARGEST = 1 << 40
_ZEROS = bytes(_BLOCK)
_FILES = (b"0", b"\0", b"7")
_LINKS = {b"1": "a link", b"2": "a symbolic link", b"S": "a sparse file"}


class BrokenTarError(ValueError):
    """A tar cannot be read from some place on."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(why)
        self.place = place


class Member(NamedTuple):
    """A file in a tar."""

    key: str
    """Its path up to the first dot of its name: what the parts of a sample share."""
    ending: str
    """What follows that dot, in small letters."""
    data: bytes
    after: int
    """Where the next member begins."""


class Sample(NamedTuple):
    """Members that stand side by side and share a key."""

    key: str
    parts: dict[str, bytes]


def members(file: Forward, *, with_data: bool, is_whole: bool = True) -> Iterator[Member]:
    """Yield the files of a tar, or of a part of one that is not whole; without their data they are passed over.

    Raises:
        BrokenTarError: If a header is broken, a name leads out of the tar, or a member is not a plain file.
    """
    name, size_told = "", -1
    while True:
        place = file.place
        header = file.take(_BLOCK)
        if header == _ZEROS or (not header and not is_whole):
            return
        if not header:
            raise BrokenTarError(place, "the tar is cut off: the mark at its end is missing")
        kind, size = _checked(header, place)
        if kind in (b"x", b"g", b"L", b"K"):
            extra = _extra(file, size, place)
            if kind == b"L":
                name = extra.split(b"\0", 1)[0].decode("utf-8", "replace")
            elif kind in (b"x", b"g"):
                told = _pax(extra, place)
                if kind == b"g" and told.keys() & {"path", "size"}:
                    raise BrokenTarError(place, "it names all members at once (a global header), which is not read")
                name = told.get("path", name)
                size_told = _number(told["size"], place) if "size" in told else size_told
            continue
        size = size if size_told < 0 else size_told
        name = name or _name(header)
        if kind in _LINKS:
            raise BrokenTarError(place, f"{name!r} is {_LINKS[kind]}; a tar to be read holds plain files")
        if kind != b"5":
            if kind not in _FILES:
                raise BrokenTarError(place, f"{name!r} is neither a file nor a folder (type {kind!r})")
            yield from _member(file, name, size, place, with_data=with_data)
        name, size_told = "", -1


def _member(file: Forward, name: str, size: int, place: int, *, with_data: bool) -> Iterator[Member]:
    padded = -(-size // _BLOCK) * _BLOCK
    data = file.take(size) if with_data else b""
    passed = file.skip(padded - len(data)) + len(data)
    if passed < padded:
        raise BrokenTarError(place, f"the tar is cut off inside {name!r}: {padded - passed} bytes are missing")
    folder, _, base = _safe(name, place).rpartition("/")
    key, dot, ending = base.partition(".")
    if dot and key and not key.startswith("__"):  # names without an ending, hidden ones and notes are no samples
        yield Member(f"{folder}/{key}" if folder else key, ending.lower(), data, file.place)


def samples_of(file: Forward) -> Iterator[Sample]:
    """Yield the samples of a tar.

    Raises:
        BrokenTarError: If the tar is broken, or a sample has the same part twice.
    """
    sample: Sample | None = None
    for member in members(file, with_data=True, is_whole=False):
        if sample is None or member.key != sample.key:
            if sample is not None:
                yield sample
            sample = Sample(member.key, {})
        if member.ending in sample.parts:
            raise BrokenTarError(member.after, f"the sample {member.key!r} has two parts {member.ending!r}")
        sample.parts[member.ending] = member.data
    if sample is not None:
        yield sample


def _checked(header: bytes, place: int) -> tuple[bytes, int]:
    """Return the type and size that a header tells, if its checksum is right."""
    if len(header) < _BLOCK:
        raise BrokenTarError(place, "the tar is cut off inside a header")
    told = header[148:156].strip(b"\0 ")
    is_number = bool(told) and all(byte in b"01234567" for byte in told)
    if not is_number or int(told, 8) != _sum(header) - sum(header[148:156]) + 8 * 32:
        raise BrokenTarError(place, "this is no header of a tar: its checksum is wrong")
    return header[156:157], _size(header[124:136], place)


def _sum(header: bytes) -> int:
    """Return the sum of the bytes, which Adler-32 holds in its lower half as long as there are few."""
    return (zlib.adler32(header[:256]) & 0xFFFF) + (zlib.adler32(header[256:]) & 0xFFFF) - 2


def _size(field: bytes, place: int) -> int:
    if field[0] & 0x80:
        size = int.from_bytes(field, "big") & ~(0x80 << 88)
    else:
        digits = field.strip(b"\0 ")
        if not all(byte in b"01234567" for byte in digits):
            raise BrokenTarError(place, f"{digits!r} is no size")
        size = int(digits or b"0", 8)
    if size > _LARGEST:
        raise BrokenTarError(place, f"a member of {size} bytes cannot be")
    return size


def _extra(file: Forward, size: int, place: int) -> bytes:
    """Return what an additional header holds, such as a long name."""
    if size > _LONGEST_NAME:
        raise BrokenTarError(place, f"an additional header of {size} bytes cannot be")
    data = file.take(size)
    missing = -size % _BLOCK
    if len(data) < size or file.skip(missing) < missing:
        raise BrokenTarError(place, "the tar is cut off inside a header")
    return data


def _pax(data: bytes, place: int) -> dict[str, str]:
    """Return the names and values of an additional header: `<length> <name>=<value>`, one after the other."""
    values = {}
    while data.strip(b"\0"):
        digits, _, _ = data[:21].partition(b" ")
        length = int(digits) if digits.isdigit() else 0
        name, equal, value = data[len(digits) + 1 : length - 1].partition(b"=")
        if length <= len(digits) or length > len(data) or not equal or data[length - 1 : length] != b"\n":
            raise BrokenTarError(place, "an additional header is broken")
        values[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        data = data[length:]
    return values


def _number(text: str, place: int) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _LARGEST):
        raise BrokenTarError(place, f"{text[:40]!r} is no size")
    return int(text)


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode("utf-8", "replace")


def _safe(name: str, place: int) -> str:
    """Return a name that stays inside: users make paths of keys."""
    while name.startswith("./"):
        name = name[2:].lstrip("/")
    if name.startswith("/") or "\0" in name or ".." in name.replace("\\", "/").split("/"):
        raise BrokenTarError(place, f"the name {name[:80]!r} leads out of the tar")
    return name
