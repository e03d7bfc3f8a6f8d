"""Torrent files that clients of BitTorrent v1 and v2 understand (BEP 52, with the pad files of BEP 47).

They are marked private (BEP 27): a client asks no public router for others who have the content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from cargobike.sharing.hashing import Hashed

_PAD = ".pad"


class Torrent(NamedTuple):
    """A torrent, and what clients call it.

    Attributes:
        content: The bytes of the file.
        infohash_v1: In hex.
        infohash_v2: In hex.
    """

    content: bytes
    infohash_v1: str
    infohash_v2: str


def in_order(paths: Sequence[str]) -> list[str]:
    """Return paths in the order in which a torrent lists them: name by name, as bytes."""
    return sorted(paths, key=lambda path: [name.encode() for name in path.split("/")])


def make_torrent(
    name: str, files: Mapping[str, Hashed], piece_size: int, *, web_seeds: Sequence[str] = (), comment: str = ""
) -> Torrent:
    """Make the torrent of some files.

    Args:
        name: The folder that clients put them into. A single file keeps its own name, if it lies in no folder.
        files: Their hashes, by path.
        piece_size: The bytes of a piece.
        web_seeds: Folders of HTTP servers that have them.
        comment: For people.
    """
    paths = in_order(list(files))
    is_single = len(paths) == 1 and "/" not in paths[0]
    info: dict[str, Any] = {
        "file tree": _tree(paths, files),
        "meta version": 2,
        "name": paths[0] if is_single else name,
        "piece length": piece_size,
        "pieces": b"".join(_v1_pieces(paths, files)),
        "private": 1,
    }
    if is_single:
        info["length"] = files[paths[0]].size
    else:
        info["files"] = _v1_files(paths, files, piece_size)
    layers = {
        bytes.fromhex(hashed.root): b"".join(hashed.pieces) for hashed in files.values() if hashed.size > piece_size
    }
    whole: dict[str, Any] = {"info": info, "piece layers": layers, "created by": "Cargobike"}
    if comment:
        whole["comment"] = comment
    if addresses := _addresses(web_seeds, paths, info["name"], is_single=is_single):
        whole["url-list"] = addresses
    encoded = bencode(info)
    return Torrent(
        bencode(whole),
        hashlib.sha1(encoded, usedforsecurity=False).hexdigest(),
        hashlib.sha256(encoded).hexdigest(),
    )


def bencode(value: Any) -> bytes:
    """Return a value as BitTorrent writes it; keys of dicts are sorted as bytes."""
    if isinstance(value, bytes):
        return b"%d:%b" % (len(value), value)
    if isinstance(value, str):
        return bencode(value.encode())
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, dict):
        pairs = sorted((key.encode() if isinstance(key, str) else key, item) for key, item in value.items())
        return b"d" + b"".join(bencode(key) + bencode(item) for key, item in pairs) + b"e"
    return b"l" + b"".join(bencode(item) for item in value) + b"e"


def _tree(paths: Sequence[str], files: Mapping[str, Hashed]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in paths:
        *folders, last = path.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        hashed = files[path]
        leaf: dict[str, Any] = {"length": hashed.size}
        if hashed.size:
            leaf["pieces root"] = bytes.fromhex(hashed.root)
        place[last] = {"": leaf}
    return tree


def _v1_files(paths: Sequence[str], files: Mapping[str, Hashed], piece_size: int) -> list[dict[str, Any]]:
    """Return the list of v1, in which every file but the last is filled up to a whole piece."""
    listed: list[dict[str, Any]] = []
    for path in paths:
        listed.append({"length": files[path].size, "path": path.split("/")})
        if path != paths[-1] and (rest := files[path].size % piece_size):
            pad = piece_size - rest
            listed.append({"attr": "p", "length": pad, "path": [_PAD, str(pad)]})
    return listed


def _v1_pieces(paths: Sequence[str], files: Mapping[str, Hashed]) -> list[bytes]:
    pieces: list[bytes] = []
    for path in paths:
        pieces += files[path].v1
    if files[paths[-1]].size:
        pieces[-1] = files[paths[-1]].v1_tail
    return pieces


def _addresses(web_seeds: Sequence[str], paths: Sequence[str], name: str, *, is_single: bool) -> list[str]:
    """Return web seeds as clients expect them (BEP 19): of one file its address, of several the folder above theirs."""
    found = []
    for address in web_seeds:
        base = address.rstrip("/")
        if not base.startswith(("http://", "https://")):
            continue
        if is_single:
            found.append(f"{base}/{quote(paths[0])}")
        elif base.rpartition("/")[2] == quote(name):
            found.append(base.rpartition("/")[0] + "/")
    return found
