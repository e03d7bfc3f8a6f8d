"""What a target of fuzzing is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cargobike.core.errors import CargobikeError
from faults.fuzzing.mutations import Form


@dataclass(frozen=True)
class Target:
    """A parser, and what is known about it.

    Attributes:
        name: What it is called, also in the corpus.
        run: Parses an input, and does with it what would be done with it.
        examples: Valid inputs.
        form: What inputs are made of.
        allowed: What it may raise; everything else is a mistake.
        weight: How many of a million inputs it gets, in thousands.
    """

    name: str
    run: Callable[[bytes], object]
    examples: tuple[bytes, ...]
    form: Form
    allowed: tuple[type[BaseException], ...] = (CargobikeError,)
    weight: int = 10
