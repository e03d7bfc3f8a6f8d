"""Text for a terminal: control characters in it are shown, never obeyed."""

from __future__ import annotations

import re
import sys
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,32}m")
_KEPT: Final = {"\n", "\t"}
# Characters that make a terminal show text in another order than it is stored in.
_REORDERING: Final = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F]
_CONTROL: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT},
    0x7F: "\u2421",
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    **{code: f"\\u{code:04x}" for code in (*_REORDERING, *range(0xD800, 0xE000))},
    **{code: f"\\x{code - 0xDC00:02x}" for code in range(0xDC80, 0xDD00)},  # bytes of a name that is not UTF-8
    0x2028: "\n",
    0x2029: "\n",
}


def neutralized(text: str, *, keep_colours: bool = False) -> str:
    r"""Make control characters visible, so that they cannot move the cursor, set titles, or rewrite lines.

    Lines and tabs stay, a carriage return becomes a new line (progress bars stay readable), and colours stay
    if wanted, ended where the text ends.

    Example:
        >>> neutralized("safe \x1b]0;title\x07")
        'safe ␛]0;title␇'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not keep_colours or "\x1b" not in text:
        return text.translate(_CONTROL)
    pieces, end = [], 0
    for match in _COLOUR.finditer(text):
        pieces += [text[end : match.start()].translate(_CONTROL), match.group()]
        end = match.end()
    reset = "\x1b[0m" if end else ""
    return "".join([*pieces, text[end:].translate(_CONTROL), reset])


def is_terminal() -> bool:
    """Tell whether standard output is shown to a person, not read by a program."""
    return sys.stdout.isatty()
