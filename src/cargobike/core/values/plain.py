"""Parameters must be plain data: they travel, and are written down as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cargobike.core.errors import CargobikeError

MOST_BYTES = 500_000
"""Parameters go through a socket in one packet, into the journal and onto the screen."""


def check_plain(params: Mapping[str, Any], error_type: type[CargobikeError]) -> None:
    """Raise an error of the given type unless all parameters are plain data of reasonable size."""
    try:
        size_bytes = len(msgspec.msgpack.encode(params))
    except (TypeError, ValueError, OverflowError) as error:
        raise error_type(
            f"parameters must be plain data (numbers, text, booleans, None, lists and dicts of these): {error}. "
            "Give a name instead, and look the object up in the train function."
        ) from error
    if size_bytes > MOST_BYTES:
        raise error_type(
            f"parameters take {size_bytes / 1e6:.1f} MB, which is too large: at most {MOST_BYTES / 1e6:g} MB travel "
            "with every trial. Put large data into a file, or bind it to the function with functools.partial."
        )
