"""Content is hashed as BEP 52 says; libtorrent, which shares no code with us, is the judge in `test_torrents.py`."""

from __future__ import annotations

import hashlib
import io
import random
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.sharing.hashing import (
    LEAF,
    PieceVerifier,
    check_piece_size,
    choose_piece_size,
    hash_file,
    layer_root,
    num_pieces,
    piece_hash,
)

PIECE = 64 * 1024


def slow_root(content: bytes) -> str:
    """Return the root of a file by the words of BEP 52: leaves filled up with zeros to a power of two."""
    leaves = [hashlib.sha256(content[at : at + LEAF]).digest() for at in range(0, len(content), LEAF)]
    width = 1
    while width < len(leaves):
        width *= 2
    layer = leaves + [bytes(32)] * (width - len(leaves))
    while len(layer) > 1:
        layer = [hashlib.sha256(layer[i] + layer[i + 1]).digest() for i in range(0, len(layer), 2)]
    return layer[0].hex()


SIZES = (1, LEAF - 1, LEAF, LEAF + 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7, 4 * 1024 * 1024, 9 * 1024 * 1024 + 5)


@pytest.mark.parametrize("size", SIZES)
def test_the_root_is_the_tree_over_all_leaves(size: int, tmp_path: Path) -> None:
    content = random.Random(size).randbytes(size)
    path = tmp_path / "content"
    path.write_bytes(content)
    hashed = hash_file(path, PIECE)
    assert (hashed.size, hashed.root) == (size, slow_root(content))
    assert len(hashed.pieces) == len(hashed.v1) == num_pieces(size, PIECE)
    assert layer_root(hashed.pieces, PIECE, size) == hashed.root
    last = content[(len(hashed.pieces) - 1) * PIECE :]
    assert hashed.v1_tail == hashlib.sha1(last).digest()
    assert hashed.v1[-1] == hashlib.sha1(last.ljust(PIECE, b"\0")).digest()
    assert hash_file(io.BytesIO(content), PIECE, threads=3) == hashed


def test_an_empty_file_has_no_root_and_no_pieces() -> None:
    assert hash_file(io.BytesIO(), PIECE) == (0, "", (), (), b"")


def test_a_stream_that_gives_little_at_a_time_has_the_same_root() -> None:
    class Drops(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 1000))

    content = random.Random(1).randbytes(3 * PIECE + 1)
    assert hash_file(Drops(content), PIECE).root == slow_root(content)


def test_pieces_are_verified_one_by_one() -> None:
    content = random.Random(2).randbytes(2 * PIECE + 10)
    hashed = hash_file(io.BytesIO(content), PIECE)
    verifier = PieceVerifier(hashed.root, hashed.size, PIECE, hashed.pieces)
    parts = [content[:PIECE], content[PIECE : 2 * PIECE], content[2 * PIECE :]]
    assert [verifier.verify(number, part) for number, part in enumerate(parts)] == [True, True, True]
    assert not verifier.verify(0, parts[1])
    assert not verifier.verify(2, parts[2] + b"\0")
    assert not verifier.verify(1, bytes([parts[1][0] ^ 1]) + parts[1][1:])


def test_a_layer_that_belongs_to_another_file_is_refused() -> None:
    hashed = hash_file(io.BytesIO(bytes(3 * PIECE)), PIECE)
    for layer in (hashed.pieces[:2], (*hashed.pieces[:2], bytes(32)), ()):
        with pytest.raises(InvalidInputError, match="do not belong"):
            PieceVerifier(hashed.root, hashed.size, PIECE, layer)


def test_an_unchanged_piece_has_the_same_hash_at_another_place() -> None:
    piece = random.Random(3).randbytes(PIECE)
    first = hash_file(io.BytesIO(piece + bytes(PIECE)), PIECE)
    second = hash_file(io.BytesIO(bytes(3 * PIECE) + piece + b"more"), PIECE)
    assert first.pieces[0] == second.pieces[3] == piece_hash(piece, PIECE, 10 * PIECE)


@pytest.mark.parametrize("size", [0, 1, 3 * LEAF, 100_000, 32 * 1024 * 1024])
def test_a_piece_size_that_is_none_is_refused(size: int) -> None:
    with pytest.raises(InvalidInputError, match="powers of two from 65536 to"):
        check_piece_size(size)


def test_pieces_grow_with_what_they_are_pieces_of() -> None:
    sizes = [choose_piece_size(size) for size in (0, 10**9, 17 * 2**30, 2**40, 2**50)]
    assert sizes == [2**20, 2**20, 2**21, 2**24, 2**24]
    assert all(check_piece_size(size) for size in sizes)
