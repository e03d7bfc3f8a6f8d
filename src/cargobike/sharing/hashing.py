"""Hash content as BitTorrent v2 does (BEP 52): a tree of SHA-256 over leaves of 16 KiB, one root for each file.

A piece is a power of two of leaves. Its hash stands for its content wherever the piece lies, so that what a new version
has unchanged is found by the hash alone. The list of a file's piece hashes, its layer, is checked against the root.
Pieces are hashed with SHA-1 at the same time, for clients that only know v1.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from cargobike.core.errors import InvalidInputError
from cargobike.core.plain_files import open_plain

LEAF: Final = 16 * 1024
SMALLEST_PIECE: Final = 64 * 1024
LARGEST_PIECE: Final = 16 * 1024 * 1024
_USUAL_PIECE: Final = 1024 * 1024
_MOST_PIECES: Final = 16_384
"""How many pieces are aimed at: above it pieces get larger, so that layers stay small."""
_NO_LEAF: Final = bytes(32)
_AT_ONCE: Final = 4 * 1024 * 1024


class Hashed(NamedTuple):
    """What is known of a file after it was read once.

    Attributes:
        size: Its bytes.
        root: The hash of its whole tree, in hex; empty for an empty file.
        pieces: The hash of each piece.
        v1: The SHA-1 of each piece; the last one is filled up with zeros, as in a torrent in which a file follows.
        v1_tail: The SHA-1 of the last piece as it is, as in a torrent that ends with this file.
    """

    size: int
    root: str
    pieces: tuple[bytes, ...]
    v1: tuple[bytes, ...]
    v1_tail: bytes


class PieceVerifier:
    """Checks pieces of one file as they come.

    Args:
        root: The root of the file, in hex.
        size: Its bytes.
        piece_size: The bytes of a piece.
        pieces: The hashes of its pieces, from wherever they came.

    Raises:
        InvalidInputError: If these are not the pieces of that file.
    """

    __slots__ = ("piece_size", "pieces", "size")

    def __init__(self, root: str, size: int, piece_size: int, pieces: Sequence[bytes]) -> None:
        if len(pieces) != num_pieces(size, piece_size) or layer_root(pieces, piece_size, size) != root:
            raise InvalidInputError(
                f"{len(pieces)} hashes of pieces do not belong to the file {root[:16]} of {size} bytes."
            )
        self.size, self.piece_size, self.pieces = size, piece_size, tuple(pieces)

    def verify(self, number: int, data: bytes | bytearray | memoryview) -> bool:
        """Tell whether these are the bytes of a piece."""
        length = min(self.piece_size, self.size - number * self.piece_size)
        return len(data) == length and piece_hash(data, self.piece_size, self.size) == self.pieces[number]


def check_piece_size(piece_size: int) -> int:
    """Return the size of pieces.

    Raises:
        InvalidInputError: If it is no power of two between 64 KiB and 16 MiB.
    """
    if not SMALLEST_PIECE <= piece_size <= LARGEST_PIECE or piece_size & (piece_size - 1):
        raise InvalidInputError(
            f"A piece size of {piece_size} bytes was given; allowed are powers of two from {SMALLEST_PIECE} to "
            f"{LARGEST_PIECE}."
        )
    return piece_size


def choose_piece_size(size: int) -> int:
    """Return the size of pieces for content of so many bytes: 1 MiB, and more for what is larger than 16 GiB."""
    piece_size = _USUAL_PIECE
    while piece_size < LARGEST_PIECE and size > piece_size * _MOST_PIECES:
        piece_size *= 2
    return piece_size


def num_pieces(size: int, piece_size: int) -> int:
    """Return how many pieces a file of so many bytes has."""
    return -(-size // piece_size)


def piece_hash(data: bytes | bytearray | memoryview, piece_size: int, size: int) -> bytes:
    """Return the hash of one piece of a file of so many bytes."""
    view = memoryview(data)
    leaves = [hashlib.sha256(view[start : start + LEAF]).digest() for start in range(0, len(view), LEAF)]
    # A file that fits into one piece has a tree of its own height; in a larger one all pieces are equally high.
    width = piece_size // LEAF if size > piece_size else _power_of_two(len(leaves))
    return _tree(leaves, width, _NO_LEAF)


def layer_root(pieces: Sequence[bytes], piece_size: int, size: int) -> str:
    """Return the root, in hex, of a file with these pieces; empty if it has none."""
    if not pieces:
        return ""
    if size <= piece_size:
        return pieces[0].hex()
    nothing = _tree([], piece_size // LEAF, _NO_LEAF)
    return _tree(list(pieces), _power_of_two(len(pieces)), nothing).hex()


def hash_file(source: Path | str | BinaryIO, piece_size: int, *, threads: int | None = None) -> Hashed:
    """Read a file once, and return its hashes; several threads compute.

    Args:
        source: A path, or a stream, which is read to its end.
        piece_size: The bytes of a piece.
        threads: How many compute; as many as there are cores by default.

    Raises:
        OSError: If it cannot be read.
    """
    check_piece_size(piece_size)
    if isinstance(source, (str, Path)):
        with open_plain(source) as file:
            return hash_file(file, piece_size, threads=threads)
    workers = threads or min(8, os.cpu_count() or 1)
    batch = max(piece_size, _AT_ONCE)
    first = _read_whole(source, batch)
    if len(first) < batch:
        # No larger than one batch: threads would cost more than they save.
        return _joined(len(first), piece_size, [_hash_batch(first, piece_size, len(first))] if first else [])
    return _hash_stream(source, first, piece_size, batch, workers)


def _hash_stream(source: BinaryIO, first: bytes, piece_size: int, batch: int, workers: int) -> Hashed:
    size, parts = 0, []
    pending: list[Future[list[tuple[bytes, bytes, bytes]]]] = []
    with ThreadPoolExecutor(workers, thread_name_prefix="cargobike-hashing") as pool:
        for data in _batches(source, first, batch):
            size += len(data)
            # Everything here is part of a file that is larger than a piece, or of exactly one piece.
            pending.append(pool.submit(_hash_batch, data, piece_size, max(size, len(first))))
            if len(pending) > 2 * workers:
                parts.append(pending.pop(0).result())
        parts += [one.result() for one in pending]
    return _joined(size, piece_size, parts)


def _batches(source: BinaryIO, first: bytes, batch: int) -> Iterator[bytes]:
    data = first
    while data:
        yield data
        data = _read_whole(source, batch) if len(data) == batch else b""


def _read_whole(source: BinaryIO, size: int) -> bytes:
    data = source.read(size)
    if len(data) == size or not data:
        return data
    parts = [data]  # raw streams and pipes give what they have
    while missing := size - sum(map(len, parts)):
        data = source.read(missing)
        if not data:
            break
        parts.append(data)
    return b"".join(parts)


def _hash_batch(data: bytes, piece_size: int, size: int) -> list[tuple[bytes, bytes, bytes]]:
    """Return of each piece its hash, its SHA-1 filled up with zeros, and its SHA-1 as it is."""
    view, hashes = memoryview(data), []
    for start in range(0, len(data), piece_size):
        piece = view[start : start + piece_size]
        sha1 = hashlib.sha1(piece, usedforsecurity=False)
        plain = sha1.digest()
        if len(piece) < piece_size:
            sha1.update(bytes(piece_size - len(piece)))
        hashes.append((piece_hash(piece, piece_size, size), sha1.digest(), plain))
    return hashes


def _joined(size: int, piece_size: int, parts: list[list[tuple[bytes, bytes, bytes]]]) -> Hashed:
    hashes = [one for part in parts for one in part]
    pieces = tuple(one[0] for one in hashes)
    tail = hashes[-1][2] if hashes else b""
    return Hashed(size, layer_root(pieces, piece_size, size), pieces, tuple(one[1] for one in hashes), tail)


def _tree(layer: list[bytes], width: int, filling: bytes) -> bytes:
    """Return the root of a tree that is `width` wide at the layer that is given, and filled up there."""
    while width > 1:
        if len(layer) % 2:
            layer = [*layer, filling]
        layer = [hashlib.sha256(layer[i] + layer[i + 1]).digest() for i in range(0, len(layer), 2)]
        filling = hashlib.sha256(filling + filling).digest()
        width //= 2
    return layer[0] if layer else filling


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length() if number > 1 else 1
