"""Parameters must be plain data: they travel, and are written down as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cargobike.core.errors import CargobikeError


def check_plain(params: Mapping[str, Any], error_type: type[CargobikeError]) -> None:
    """Raise an error of the given type unless all parameters are plain data."""
    try:
        msgspec.msgpack.encode(params)
    except (TypeError, ValueError, OverflowError) as error:
        raise error_type(
            f"parameters must be plain data (numbers, text, booleans, None, lists and dicts of these): {error}. "
            "Give a name instead, and look the object up in the train function."
        ) from error
