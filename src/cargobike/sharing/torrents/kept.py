"""Torrent files that were made when something was published, kept by what clients call them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cargobike.core.errors import NotFoundError
from cargobike.core.plain_files import read_plain
from cargobike.sharing.hashing import hash_file
from cargobike.sharing.records import Manifest
from cargobike.sharing.torrents.hybrid import Torrent, make_torrent


def keep_torrent(folder: Path, torrent: Torrent) -> Path:
    """Write a torrent into the folder of a network."""
    place = folder / "torrents"
    place.mkdir(mode=0o700, exist_ok=True)
    path = place / f"{torrent.infohash_v2}.torrent"
    temporary = place / f".{secrets.token_hex(8)}"
    temporary.write_bytes(torrent.content)
    os.replace(temporary, path)
    return path


def find_torrent(folder: Path, manifest: Manifest, places: list[str]) -> bytes:
    """Return the torrent of a publication: as it was kept, or made again from files that are here.

    Args:
        folder: The folder of the network.
        manifest: The publication.
        places: Folders that hold it.

    Raises:
        NotFoundError: If it was not published here, and its files are not here.
    """
    kept = folder / "torrents" / f"{manifest.infohash_v2}.torrent"
    if kept.is_file():
        return read_plain(kept)
    for place in places:
        if "://" in place or not all((Path(place) / file.path).is_file() for file in manifest.files):
            continue
        hashed = {file.path: hash_file(Path(place) / file.path, manifest.piece_size) for file in manifest.files}
        made = make_torrent(
            manifest.name,
            hashed,
            manifest.piece_size,
            web_seeds=manifest.web_seeds,
            comment=manifest.description[:500],
        )
        if made.infohash_v2 == manifest.infohash_v2:
            keep_torrent(folder, made)
            return made.content
    raise NotFoundError(
        f"The torrent of {manifest.reference} is not here. Get it first: cargobike share get {manifest.reference}",
        wanted=manifest.reference,
    )
