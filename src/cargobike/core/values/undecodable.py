"""What decoders raise for bytes that are not what was expected."""

from __future__ import annotations

from typing import Final

import msgspec

UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Wrong types or no JSON or msgpack at all, text that is not UTF-8, endless nesting."""
