"""What each rank returned, on its way back: any object that can be pickled, in a file that proves where it comes from.

The file begins with a code that only those can make who have the key, which travels with the function to the ranks of
this call alone. What another process has written there is refused before it is unpickled.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import cloudpickle

from cargobike.core.errors import AuthenticationError, FunctionError, NotFoundError

_CODE_BYTES: Final = 32
_PREFIX: Final = "horovod-result-"


def new_key() -> bytes:
    """Return a key for one call."""
    return os.urandom(_CODE_BYTES)


def write_result(folder: Path, rank: int, result: Any, key: bytes) -> None:
    """Write what a rank returned, at once or not at all.

    Raises:
        FunctionError: If it cannot be pickled.
    """
    try:
        data = cloudpickle.dumps(result)
    except Exception as error:
        raise FunctionError(
            f"Rank {rank} returned a {type(result).__name__}, which cannot be pickled: {error}. Return plain values, "
            "arrays or tensors."
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_PREFIX}{rank}"
    building = path.with_name(f".{path.name}.{os.getpid()}")
    building.write_bytes(_code(data, rank, key) + data)
    building.rename(path)


def take_results(folder: Path, ranks: Sequence[int], key: bytes) -> list[Any]:
    """Return what these ranks returned, in their order, and remove the files.

    Raises:
        NotFoundError: If a rank has left none; names it.
        AuthenticationError: If a file was not written by that rank.
    """
    results: list[Any] = []
    paths = [folder / f"{_PREFIX}{rank}" for rank in ranks]
    for rank, path in zip(ranks, paths, strict=True):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise NotFoundError(
                f"rank {rank} of {len(ranks)} has left no result in {folder}", wanted=path.name
            ) from None
        code, data = content[:_CODE_BYTES], content[_CODE_BYTES:]
        if not hmac.compare_digest(code, _code(data, rank, key)):
            raise AuthenticationError(f"{path} was not written by rank {rank}, and is not read.")
        results.append(cloudpickle.loads(data))
    for path in paths:
        path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
    return results


def _code(data: bytes, rank: int, key: bytes) -> bytes:
    return hmac.digest(key, rank.to_bytes(8, "big") + data, hashlib.sha256)
