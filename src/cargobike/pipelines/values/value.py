"""A value by reference: what journals say of inputs and results."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

import msgspec

from cargobike.core.values.exact import unpack_exactly

Form = Literal["plain", "json", "numpy", "arrow", "frame", "pickle", "kept", "step"]
MOST_INLINE_BYTES: Final = 4096
_MOST_SHOWN: Final = 120


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value by reference.

    Attributes:
        form: How it is kept: in the journal as plain data, in a file of the run (JSON, NumPy, Arrow, a data frame as
            Arrow, a pickle), as a thing of the project, or as what another step returned.
        digest: The fingerprint of its content.
        data: Plain data, packed exactly; a small pickle as text; the number of a step, or those of several.
        thing: The kind and id of a thing of the project.
        path: The file, in the folder of the run.
        size_bytes: How large it is.
        text: A few words for people, where the data does not speak for itself.
    """

    form: Form
    digest: str = ""
    data: Any = None
    thing: tuple[str, str] | None = None
    path: str = ""
    size_bytes: int = 0
    text: str = ""

    def __str__(self) -> str:
        """Say what it is on one line."""
        if self.form == "step":
            return f"steps {', '.join(map(str, self.data))}" if isinstance(self.data, list) else f"step {self.data}"
        if self.thing is not None:
            return f"{self.thing[0]} {self.thing[1]}"
        if self.form == "plain":
            return shortened(repr(unpack_exactly(self.data)))
        return self.text or self.form


def digest_of(*parts: bytes) -> str:
    """Return the fingerprint of some bytes."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()


def shortened(text: str) -> str:
    """Shorten a text to what fits on a line."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 1]}…"
