"""Manifests of versions: JSON that may come from strangers, so what is read is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.values.undecodable import UNDECODABLE

FORMAT: Final = 1
"""The format of all manifests so far; one with another number was written by a newer Cargobike."""
_MOST_MISTAKES: Final = 5

T = TypeVar("T", bound=msgspec.Struct)


class _Format(msgspec.Struct):
    format: int


def encode_manifest(manifest: msgspec.Struct) -> bytes:
    """Return the bytes of a manifest, readable for people too."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def read_manifest(
    data: bytes, kind: type[T], place: str, *, noun: str, mistakes_in: Callable[[T], list[str]], most_bytes: int = 0
) -> T:
    """Return the manifest that some bytes hold.

    Args:
        data: The bytes.
        kind: What it is decoded into.
        place: Where the bytes are from, for errors.
        noun: What it is a manifest of, such as `a model`, for errors.
        mistakes_in: Returns what makes a manifest unusable, in words.
        most_bytes: How long it may be; 0 for any length.

    Raises:
        StoreError: If they are no manifest, or one that cannot be trusted; says what is wrong.
    """
    if most_bytes and len(data) > most_bytes:
        raise StoreError(f"{place} is no manifest of {noun}: it has more than {most_bytes >> 20} MiB.")
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found != FORMAT:
            raise StoreError(f"{place} has format {found}; this Cargobike reads format {FORMAT}. Install a newer one.")
        manifest = msgspec.json.decode(data, type=kind)
        mistakes = mistakes_in(manifest)
    except UNDECODABLE as error:
        raise StoreError(f"{place} is no manifest of {noun}: {error}") from error
    if mistakes:
        raise StoreError(f"{place} is no manifest that can be used: {'; '.join(mistakes[:_MOST_MISTAKES])}.")
    return manifest
