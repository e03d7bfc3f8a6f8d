"""The functions that users call: publish, find, and say something about what others have published."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import Entry, Opinion, Question, read_reference
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.places import catalogue_file, check_network, known_networks
from cargobike.sharing.publishing import saying
from cargobike.sharing.publishing.draft import Draft, make_draft
from cargobike.sharing.publishing.visible import Said
from cargobike.store.files import project as projects


def publish(
    name: str,
    source: Any,
    *,
    network: str = "",
    description: str = "",
    license: str = "",
    tags: Sequence[str] = (),
    web_seeds: Sequence[str] = (),
    sample_rows: int = 5,
    redact: Sequence[str] = (),
    hidden: bool = False,
    yes: bool = False,
) -> Entry:
    """Publish something in a private network, as the next version of its name.

    Says what becomes visible to whom, and asks. What is published stays where it lies; the daemon of the project
    (`cargobike share serve`) gives it to others. What has not changed since the last version is not sent again.

    Args:
        name: What others call it.
        source: A path; an address (`https://…`, `s3://…`); a table, training dataset or version of a model, or its
            name in the project: `table:higgs`, `dataset:team_value:2`, `model:digits:3`.
        network: The network; may be left out if the project knows only one.
        description: A sentence or more.
        license: What others may do with it, such as `CC-BY-4.0`.
        tags: Words to find it by.
        web_seeds: Addresses of HTTP servers or `s3://` buckets whose folder has the same files.
        sample_rows: How many of its rows are shown to others; 0 for none.
        redact: Columns that are left out of these rows.
        hidden: Whether hidden files of a folder are published, too.
        yes: Do not ask.

    Raises:
        InvalidInputError: If it cannot be published, or there is no terminal to ask at.
        NotFoundError: If there is no such source.
    """
    draft = make_draft(
        Said(name=name, description=description, license=license, tags=_words(tags), web_seeds=tuple(web_seeds)),
        source,
        project=projects.prepare(),
        network=choose_network(network),
        sample_rows=sample_rows,
        redact=redact,
        hidden=hidden,
    )
    if not yes and not _agreed(draft.visible()):
        raise InvalidInputError("Nothing was published.")
    return publish_draft(draft)


def publish_draft(draft: Draft) -> Entry:
    """Publish what was agreed to."""
    with (
        Catalogue(catalogue_file(draft.project, draft.network), draft.network) as catalogue,
        contextlib.closing(Holdings.of(draft.project, draft.network)) as holdings,
    ):
        return draft.publish(catalogue, holdings)


def search(
    *words: str,
    network: str = "",
    tags: Sequence[str] = (),
    columns: Sequence[str] = (),
    publisher: str = "",
    kind: str = "",
    least_bytes: int = 0,
    most_bytes: int | None = None,
    all_versions: bool = False,
    hidden: bool = False,
    limit: int = 100,
) -> list[Entry]:
    """Return what was published in a network: trusted publishers first, then the best fit.

    Args:
        *words: All of them occur in name, description, tags or columns; the beginning of a word is enough.
        network: The network; may be left out if the project knows only one.
        tags: It has all of these tags.
        columns: Its rows have all of these columns.
        publisher: A key, the beginning of one, or what this project calls the publisher.
        kind: `table`, `dataset`, `model`, `folder` or `url`.
        least_bytes: It is at least so large.
        most_bytes: It is at most so large.
        all_versions: Not only the newest version of each.
        hidden: Also what was withdrawn, and what muted publishers have published.
        limit: How many at most.
    """
    question = Question(
        words=words,
        tags=_words(tags),
        columns=_words(columns),
        publisher=publisher,
        kind=kind,
        least_bytes=least_bytes,
        most_bytes=most_bytes,
        all_versions=all_versions,
        hidden=hidden,
        limit=limit,
    )
    with open_catalogue(network) as catalogue:
        return catalogue.find(question)


def opinions(publication: str, *, network: str = "") -> list[Opinion]:
    """Return ratings and comments on a publication, those of trusted members first."""
    with open_catalogue(network) as catalogue:
        return catalogue.opinions(catalogue.entry(*read_reference(publication)))


def rate(publication: str, rating: int = 0, comment: str = "", *, network: str = "") -> None:
    """Rate a publication from 1 to 5, comment on it, or both; what is not said now stays as it was said before.

    Raises:
        InvalidInputError: If there is neither, or the rating is no whole number from 1 to 5.
    """
    if rating not in range(6) or (not rating and not comment.strip()):
        raise InvalidInputError(f"rating={rating!r} and comment={comment!r} were given; give 1 to 5, words, or both.")
    with open_catalogue(network) as catalogue:
        saying.give_opinion(projects.prepare(), catalogue, read_reference(publication), rating, comment)


def withdraw(publication: str, why: str = "", *, network: str = "") -> Entry:
    """Take back a version that this project has published; it is not found or given any more.

    What others got before stays with them.
    """
    with open_catalogue(network) as catalogue:
        return saying.withdraw(projects.prepare(), catalogue, read_reference(publication), why)


def trust(publisher: str, alias: str = "", *, network: str = "") -> str:
    """Trust a publisher, and give it a name: `higgs@alice`. Returns its key."""
    return stand("trust", publisher, network=network, alias=alias)


def mute(publisher: str, *, network: str = "") -> str:
    """Leave a publisher out of what is found. Returns its key."""
    return stand("mute", publisher, network=network)


def block(publisher: str, *, network: str = "") -> str:
    """Keep nothing of a publisher, and take no connection from it. Returns its key."""
    return stand("block", publisher, network=network)


def stand(
    how: Literal["trust", "mute", "block", "forget"], publisher: str, *, network: str = "", alias: str = ""
) -> str:
    """Change what this project thinks of a publisher, and return its key."""
    with open_catalogue(network) as catalogue:
        change: dict[str, Callable[[], str]] = {
            "trust": lambda: catalogue.trust(publisher, alias),
            "mute": lambda: catalogue.mute(publisher),
            "block": lambda: catalogue.block(publisher),
            "forget": lambda: catalogue.forget(publisher),
        }
        return change[how]()


@contextlib.contextmanager
def open_catalogue(network: str = "", project: ProjectFolder | None = None) -> Iterator[Catalogue]:
    """Open the catalogue of a network of the project in use."""
    where = project or projects.prepare()
    name = choose_network(network, where)
    with Catalogue(catalogue_file(where, name), name) as catalogue:
        yield catalogue


def choose_network(network: str, project: ProjectFolder | None = None) -> str:
    """Return the network that is meant: the one that is named, or the only one that the project knows.

    Raises:
        InvalidInputError: If none is named, and the project knows none or several.
    """
    if network:
        return check_network(network)
    known = known_networks(project or projects.current())
    if len(known) == 1:
        return known[0]
    which = f"it knows {', '.join(known)}" if known else "it knows none yet"
    raise InvalidInputError(f"Name the network of this project, as in network='lab' or --network lab; {which}.")


def _words(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _agreed(visible: str) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInputError(f"{visible}\nThere is no terminal to ask at: say yes=True if that is meant.")
    sys.stderr.write(f"{visible}\n")
    return input("Publish it? [y/N] ").strip().lower() in {"y", "yes"}
