"""What a train function is fed with: where a product that keeps tables and one that runs functions meet.

One product registers a feeder, which describes what a user gives, and writes it into the project if workers could not
read it otherwise. The description travels to the workers as plain data, and names what opens it there. What is opened
may have a place in the data, which checkpoints keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from cargobike.core.layout import ProjectFolder
from cargobike.core.origins import label, lift


class Feed(msgspec.Struct, frozen=True, array_like=True):
    """What a train function is fed with, and what gives a rank its share of it.

    Descriptions are recorded: fields are only ever added at the end, with a default that means what was before.

    Attributes:
        folder: The folder of the project that holds the files; empty if the data is read where it lies.
        names: The files, or what people call the data.
        rows: How many rows each of them has.
        opener: The `module:name` of an `Opener`.
        checker: The `module:name` of a `Checker`; empty for descriptions that were recorded before there was one.
        source: What people call the data: an address without credentials, a path, the name of a table.
        version: The version of the table or training dataset, if it has any.
        fingerprint: What the content was.
        options: How it is read, as plain data for people and comparisons.
        details: What only the opener understands, as plain data.
        objects: What is not data among the options, pickled. It travels like the function: by the engine's own channel.
        kind: What the data is, `table`, `dataset` or `file`; empty if it was only in memory.
        part: Which part of a training dataset it is.
    """

    folder: str
    names: list[str]
    rows: list[int]
    opener: str = "cargobike.data.shard:Shard"
    checker: str = ""
    source: str = ""
    version: str = ""
    fingerprint: str = ""
    options: dict[str, Any] = {}
    details: dict[str, Any] = {}
    objects: bytes = b""
    kind: str = ""
    part: str = ""

    def __post_init__(self) -> None:
        """Read what was recorded before there was a `kind`, when the source held the version too."""
        lift(self)

    @property
    def label(self) -> str:
        """What people write to mean it, such as `points:3` or `team_value:2/train`."""
        return label(self.source, self.version, self.part)

    @property
    def num_rows(self) -> int:
        """How many rows there are in all."""
        return sum(self.rows)


class Feeder(Protocol):
    """Describes what a user gives as `data`, written into the project if need be; refuses what it does not know."""

    def __call__(self, data: object, project: ProjectFolder, *, ranks: int = 1, travels: bool = False) -> Feed:
        """Return the description; raises `InvalidInputError`.

        `ranks` share it in a trial; with `travels` workers may be on machines that do not see the files of this one.
        """
        ...


class Checker(Protocol):
    """Tells whether a feed is still what it was when it was described."""

    def __call__(self, feed: Feed, root: Path) -> None:
        """Raise `InvalidInputError`, which says what to do, if the data is gone or has changed."""
        ...


class Opener(Protocol):
    """Gives a rank its share of a feed, on the machine where it runs."""

    def __call__(self, feed: Feed, root: Path, rank: int, world_size: int, bring: Callable[[str], None]) -> Any:
        """Return what the train function gets as `data`; `bring` makes sure that a file of the project is here."""
        ...


class Consumed(msgspec.Struct, frozen=True):
    """What was drawn so far in this process.

    Attributes:
        rows: How many rows were given out.
        waited_s: How long the train function had to wait for them.
    """

    rows: int
    waited_s: float


class Follower(Protocol):
    """The trial, as what feeds it sees it."""

    def begins(self) -> None:
        """Called before rows are given out, whenever drawing begins."""

    def drew(self) -> None:
        """Called after each batch; cheap."""


@runtime_checkable
class Placed(Protocol):
    """Something that has a place in the data.

    Guarantees: a state is plain data that JSON can hold, and means the same for every rank and every number of ranks.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the place: what was given out so far counts as used."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from such a place; raises `InvalidInputError` if it is a place in other data."""
        ...

    def follow(self, follower: Follower) -> None:
        """Tell a trial from now on what is drawn."""
        ...

    def consumed(self) -> Consumed:
        """Return what was drawn."""
        ...
