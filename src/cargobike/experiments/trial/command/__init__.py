"""Programs as train functions: a command line is filled with parameters, run, and its output read for numbers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class Program:
    """What is called like a train function, runs a program, and can do without a parameter that is not given."""

    title: str
    """What it is called in records."""
    places: Collection[str]
    """The parameters that its command line names, each in braces."""
    takes_any: bool
    """Whether it has a place for all parameters, whatever they are called."""

    def __call__(self, **params: Any) -> dict[str, Any]:
        """Run the program with these parameters and return its score."""
        raise NotImplementedError
