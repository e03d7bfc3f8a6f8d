"""What an experiment is fed with: described when it is launched, checked when it is taken up again."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from cargobike.core.asked import Asked, Feeding
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.feeding import Checker, Feed, Feeder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products
from cargobike.core.values.words import count
from cargobike.store.files import project


def feed_with(data: object, asked: Asked, *, travels: bool) -> tuple[Feed, Asked]:
    """Describe what a train function is fed with, by the product that keeps tables, and write it into the record.

    `travels` if workers may be on machines that do not see the files of this one.

    Raises:
        InvalidInputError: If it cannot be used, has no rows, or fewer rows than there are ranks.
    """
    feeder: Feeder = next(load(product.feeder) for product in products() if product.feeder)
    ranks = asked.placement.gang.size or 1
    feed = feeder(data, project.prepare(), ranks=ranks, travels=travels)
    if feed.num_rows < ranks:
        raise InvalidInputError(
            f"The data has {count(feed.num_rows, 'row')}, and {ranks} ranks cannot share that: each needs a row. "
            f"Use at most {count(feed.num_rows, 'worker')} for a trial, or give more data."
        )
    feeding = Feeding(
        source=feed.source,
        version=feed.version,
        fingerprint=feed.fingerprint,
        rows=feed.num_rows,
        options=feed.options,
        kind=feed.kind,
        part=feed.part,
    )
    return feed, replace(asked, feeding=feeding, keeping=replace(asked.keeping, data=feed.folder))


def check_feed(feed: Feed | None, root: Path) -> None:
    """Refuse to go on with data that is gone, or is not what it was.

    Raises:
        InvalidInputError: Saying what to do.
    """
    if feed is not None and feed.checker:
        checker: Checker = load(feed.checker)
        checker(feed, root)
