"""What a train function is fed with: where a product that keeps tables and one that runs functions meet.

One product registers a feeder, which writes what a user gives into the project and describes it; the description
travels to the workers as plain data, and names what opens it there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from cargobike.core.layout import ProjectFolder


class Feed(msgspec.Struct, frozen=True, array_like=True):
    """Files in a folder of the project, how many rows each has, and what gives a rank its share of them.

    `opener` is the `module:name` of an `Opener`. Descriptions that were recorded before it was part of them mean the
    one that was the only one.
    """

    folder: str
    names: list[str]
    rows: list[int]
    opener: str = "cargobike.data.shard:Shard"


class Feeder(Protocol):
    """Writes what a user gives as `data` into a project, and describes it; refuses what it does not understand."""

    def __call__(self, data: object, project: ProjectFolder) -> Feed:
        """Return the description of what was written; raises `InvalidInputError`."""
        ...


class Opener(Protocol):
    """Gives a rank its share of a feed, on the machine where it runs."""

    def __call__(self, feed: Feed, root: Path, rank: int, world_size: int, bring: Callable[[str], None]) -> Any:
        """Return what the train function gets as `data`; `bring` makes sure that a file of the project is here."""
        ...
