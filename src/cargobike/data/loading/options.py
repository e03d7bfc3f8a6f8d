"""What a loader was asked for, as one record that is checked whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.loading.columns import FORMS, RAGGED, Columns, Form, Ragged
from cargobike.data.loading.shares import LASTS, Last

ON_ERROR = ("raise", "skip")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything about a loader but the source and the rank; `Loader` says what each means."""

    batch_size: int = 1024
    columns: Columns = None
    shuffle: bool = False
    seed: int = 0
    to: Form = "numpy"
    transform: Callable[[Any], Any] | None = None
    ragged: Ragged = "error"
    nulls: Any = "error"
    last: Last = "keep"
    on_error: str = "raise"
    mix: int | None = None
    threads: int = 2
    timeout_s: float = 600.0

    def check(self) -> None:
        """Refuse what cannot be done.

        Raises:
            InvalidInputError: With all mistakes.
        """
        mistakes = []
        for name, least in (("batch_size", 1), ("seed", 0), ("threads", 1), ("mix", 1)):
            value = getattr(self, name)
            if name == "mix" and value is None:
                continue
            if type(value) is not int or value < least:
                mistakes.append(f"{name}={value!r}: give a whole number, at least {least}.")
        for name, choices in (("to", FORMS), ("ragged", RAGGED), ("last", LASTS), ("on_error", ON_ERROR)):
            value = getattr(self, name)
            if value not in choices:
                allowed = ", ".join(map(repr, choices))
                mistakes.append(f"{name}={value!r}: give one of {allowed}.{nearest(str(value), choices)}")
        transform: Any = self.transform
        if transform is not None and not callable(transform):
            mistakes.append(f"transform={self.transform!r}: give a function that takes a batch and returns one.")
        if not self.timeout_s > 0:
            mistakes.append(f"timeout_s={self.timeout_s!r}: give a number of seconds.")
        if mistakes:
            raise InvalidInputError("The loader cannot be made.", mistakes)
