"""What deployments were asked and what they answered, followed by other products while it is written.

The product that serves models registers a `LogKeeper` (`Product.logs`); the one that watches them reads through it, and
knows neither files nor brokers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products


class Stretch(NamedTuple):
    """Rows of a log that were not read before.

    Attributes:
        rows: A `pyarrow.Table` with the columns of an inference log: `request_id`, `at`, `latency_ms`, `model`,
            `version`, `status`, `row`, `input.<field>` and `output.<field>`.
        position: Where to go on; plain text, to be kept together with whatever was made of the rows, so that each row
            counts once, whenever a reader is killed.
        more: Whether there are more rows already.
        dropped: How many requests of this stretch could not be kept by the log.
    """

    rows: Any
    position: str
    more: bool
    dropped: int = 0


class Follower(Protocol):
    """Reads a log from a position on. Every row comes once, also where files are merged or written late."""

    def read(self, position: str, most: int) -> Stretch:
        """Return the next rows, at most about `most`; none if there is nothing new.

        Args:
            position: What the last stretch said; empty for the beginning of what is kept.
            most: How many rows are wanted at once.

        Raises:
            StoreError: If the log cannot be reached now; the same call may succeed later.
        """
        ...

    def end(self) -> str:
        """Return the position behind everything that is there now: for those who only want what comes."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class Logged(NamedTuple):
    """What is known of a deployment's log.

    Attributes:
        model: The name of the model that is served; empty if that is not known here.
        version: The version that serves, or 0.
        sample: The share of requests that is kept.
        redacted: Fields whose values are left out.
        url: Where the files lie; empty if that is the project. It may hold credentials.
        folder: The folder of the files.
        kafka: The servers of the broker, if the log goes there instead.
        topic: Its topic.
    """

    model: str = ""
    version: int = 0
    sample: float = 1.0
    redacted: tuple[str, ...] = ()
    url: str = ""
    folder: str = ""
    kafka: str = ""
    topic: str = ""


@runtime_checkable
class Splitter(Follower, Protocol):
    """A follower whose log several processes can read at once."""

    def ahead(self, position: str, most: int) -> str:
        """Return the position behind the next rows, without reading them; takes what `read` takes."""
        ...

    def pieces(self, start: str, end: str) -> list[bytes]:
        """Return the rows between two positions as pieces, which `LogKeeper.read_piece` reads, in their order."""
        ...


class LogKeeper(Protocol):
    """The door of the product that logs requests."""

    def about(self, deployment: str, project: ProjectFolder) -> Logged:
        """Return what is known of the log of a deployment.

        Raises:
            NotFoundError: If there is no such deployment.
        """
        ...

    def follow(self, deployment: str, project: ProjectFolder) -> Follower:
        """Return a follower of the log of a deployment, wherever that lies.

        Raises:
            NotFoundError: If there is no such deployment.
        """
        ...

    def read_piece(self, piece: bytes) -> Any:
        """Return the rows of one piece of a log, as a `pyarrow.Table`: in any process, as often as one likes.

        Raises:
            StoreError: If the log cannot be reached now.
        """
        ...


def log_keeper(kind: str = "deployment") -> LogKeeper:
    """Return the door of the product that logs requests, or that keeps other things whose rows are followed."""
    paths = {other: path for product in products() for other, path in product.followed.items()}
    paths["deployment"] = next(product.logs for product in products() if product.logs)
    keeper: LogKeeper = load(paths[kind])
    return keeper
