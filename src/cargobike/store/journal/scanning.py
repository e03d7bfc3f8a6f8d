"""Find the few lines of a journal that hold certain bytes, as fast as a disk reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cargobike.core.errors import StoreError
from cargobike.core.plain_files import open_plain
from cargobike.store.journal.lines import is_intact

_BLOCK_BYTES: Final = 4 << 20


def lines_with(path: Path, text: bytes) -> Iterator[bytes]:
    """Yield the whole lines of a journal that hold some bytes, in order, without their newlines.

    Lines are found in blocks, not one by one, and only those that are found are checked. So it says nothing about the
    rest of the journal.

    Args:
        path: The journal.
        text: What to look for; not a newline.

    Raises:
        StoreError: If there is no journal.
    """
    try:
        file = open_plain(path)
    except OSError as error:
        raise StoreError(f"Cannot read the journal {path}: {error.strerror}.") from error
    with file:
        rest = b""
        while block := file.read(_BLOCK_BYTES):
            block = rest + block
            end = block.rfind(b"\n") + 1
            found = block.find(text, 0, end)
            while found >= 0:
                begin, stop = block.rfind(b"\n", 0, found) + 1, block.find(b"\n", found)
                if is_intact(block[begin:stop]):
                    yield block[begin:stop]
                found = block.find(text, stop, end)
            rest = block[end:]
