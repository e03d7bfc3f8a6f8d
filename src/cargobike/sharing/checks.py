"""What a record must keep to besides its bounds: safe paths, sums that fit, no bombs of tiny files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from cargobike.core.errors import InvalidInputError, RecordError
from cargobike.sharing.hashing import check_piece_size
from cargobike.sharing.identity.keys import read_key
from cargobike.sharing.places import check_network
from cargobike.sharing.shapes import File, Manifest, Note

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_PAD: Final = ".pad"
"""What the files are called that fill up a torrent; see `torrents/`."""
_MOST_NAMES: Final = 50
FREE_FILES: Final = 1000
"""So many files may be of any size; in publications of more they have `LEAST_MEAN` bytes on average."""
LEAST_MEAN: Final = 1024
MOST_SAMPLE_BYTES: Final = 64 * 1024


def check_name(name: str) -> str:
    """Return the name of a publication.

    Raises:
        RecordError: If it can be none.
    """
    if not _NAME.fullmatch(name):
        raise RecordError(
            "name",
            f"the name {name[:100]!r} was given; a name has 1 to 100 letters, digits, '-', '_' and '.', and begins and "
            f"ends with a letter or digit",
        )
    return name


def check_path(path: str) -> str:
    """Return a path in a publication.

    Raises:
        RecordError: If it leads anywhere but below the folder that the publication is put into.
    """
    names = path.split("/")
    safe = (
        all(name not in {"", ".", ".."} and len(name.encode()) <= 255 for name in names)
        and len(names) <= _MOST_NAMES
        and "\\" not in path
        and not _CONTROL.search(path)
        and not _DRIVE.match(path)
        and names[0] != _PAD
    )
    if not safe:
        raise RecordError("path", f"the path {path[:100]!r} is not a plain path below the publication's folder")
    return path


def check_files(files: Sequence[File]) -> None:
    """Check that files can lie beside each other, and that there are not too many for their size.

    Raises:
        RecordError: If not.
    """
    taken: set[str] = set()
    folders: set[str] = set()
    for file in files:
        check_path(file.path)
        if file.path in taken:
            raise RecordError("path", f"the path {file.path[:100]!r} is there twice")
        if bool(file.size) != bool(file.root):
            raise RecordError(
                "size", f"{file.path[:100]!r} has {file.size} bytes and {'a' if file.root else 'no'} root"
            )
        taken.add(file.path)
        end = file.path.rfind("/")
        while end > 0 and file.path[:end] not in folders:
            folders.add(file.path[:end])
            end = file.path.rfind("/", 0, end)
    if both := taken & folders:
        raise RecordError("path", f"{min(both)[:100]!r} is both a file and a folder")
    total = sum(file.size for file in files)
    if len(files) > FREE_FILES and total < LEAST_MEAN * len(files):
        raise RecordError(
            "files",
            f"{len(files)} files of {total // len(files)} bytes on average; above {FREE_FILES} files they must have "
            f"{LEAST_MEAN} bytes on average: pack them into fewer, as `cargobike data pack` does",
        )


def check_manifest(manifest: Manifest) -> None:
    """Check a manifest whose fields are within their bounds.

    Raises:
        RecordError: If it cannot be what an honest publisher writes.
    """
    check_name(manifest.name)
    _plainly(manifest.network, manifest.publisher, manifest.piece_size)
    if manifest.supersedes is not None and manifest.supersedes >= manifest.version:
        raise RecordError("version", f"version {manifest.version} says that it supersedes {manifest.supersedes}")
    if not manifest.files:
        raise RecordError("files", "it has no files")
    check_files(manifest.files)
    if (total := sum(file.size for file in manifest.files)) != manifest.size:
        raise RecordError("size", f"it says {manifest.size} bytes, and its files have {total}")
    names = [column.name for column in manifest.columns]
    if len(set(names)) < len(names):
        raise RecordError("columns", "a column is there twice")
    if len(msgspec.json.encode(manifest.sample)) > MOST_SAMPLE_BYTES:
        raise RecordError("sample", f"its sample has more than {MOST_SAMPLE_BYTES} bytes")
    for tag in manifest.tags:
        if not tag.strip() or _CONTROL.search(tag):
            raise RecordError("tags", f"the tag {tag!r} is empty or has control characters")
    for address in manifest.web_seeds:
        check_web_seed(address)


def check_web_seed(address: str) -> str:
    """Return the address of a server that has the files, too.

    Raises:
        RecordError: If it is no such address, or holds a password, which everybody in the network would read.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise RecordError("web seed", f"{address[:100]!r} is no address: {error}") from error
    if parts.scheme not in {"http", "https", "s3"} or not parts.hostname or port == 0 or _CONTROL.search(address):
        raise RecordError("web seed", f"{address[:100]!r} is no address of a server; write https://… or s3://…")
    if parts.username is not None or parts.password is not None:
        raise RecordError("web seed", "an address holds a user or a password, which every member could read")
    return address


def check_note(note: Note) -> None:
    """Check a note whose fields are within their bounds.

    Raises:
        RecordError: If it says nothing, or more than one thing.
    """
    _plainly(note.network, note.publisher)
    if note.what == "replaced":
        _plainly(note.network, note.successor)
        if note.successor == note.publisher or note.about or note.name or note.rating:
            raise RecordError("note", "a key that is replaced names another key, and nothing else")
        return
    check_name(note.name)
    _plainly(note.network, note.about)
    if note.successor or note.proof:
        raise RecordError("note", "only a key that is replaced names a successor")
    if note.what == "withdrawn" and (note.about != note.publisher or note.rating):
        raise RecordError("note", "only its publisher can withdraw a publication")
    if note.what == "opinion" and not note.rating and not note.text.strip():
        raise RecordError("note", "an opinion has a rating of 1 to 5, a comment or both")


def _plainly(network: str, publisher: str, piece_size: int | None = None) -> None:
    try:
        check_network(network)
        read_key(publisher)
        if piece_size is not None:
            check_piece_size(piece_size)
    except InvalidInputError as error:
        raise RecordError("malformed", str(error).removesuffix(".")) from error
