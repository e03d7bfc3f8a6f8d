"""Sharing on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote

from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import Question
from cargobike.sharing.pages import describing
from cargobike.sharing.places import known_networks
from cargobike.sharing.publishing.visible import size_words
from cargobike.ui.web.overview.cards import Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document

_MOST = 20_000


def sharing_card(project: ProjectFolder) -> Card:
    """Make the card of sharing: each network, and what is transferred in it."""
    return Card(
        name="sharing",
        title="Sharing",
        address="/sharing",
        place=70,
        look=lambda: _look(project),
        empty="Nothing is shared yet. Publish a table or a model:",
        command="cargobike share publish points table:points",
    )


def documents(project: ProjectFolder) -> Iterator[Document]:
    """List all publications for search, each in its newest version."""
    for network in known_networks(project):
        for entry in describing.entries(project, network, Question(limit=_MOST)):
            yield Document(
                kind="publication",
                name=entry.name,
                address=f"/sharing/{network}/publications/{entry.name}?publisher={quote(entry.publisher, safe='')}",
                text=entry.description,
                tags=entry.tags,
                columns=[name for name, _ in entry.columns],
                words=f"{network} {entry.reference} {entry.kind} {entry.alias}",
                at=_seconds(entry.created),
            )


def _seconds(created: str) -> float:
    try:
        return datetime.fromisoformat(created).timestamp()
    except ValueError:
        return 0.0


def _look(project: ProjectFolder) -> Glance:
    names = known_networks(project)
    entries, total, moving = [], 0, 0
    for name in names:
        line, members = describing.network_and_members(project, name)
        rate = sum(member.rate or 0.0 for member in members)
        moving += rate > 0
        total += line.publications
        given = sum(member.given_bytes for member in members)
        words = [_counted(line.publications, "publication"), _counted(line.members, "member")]
        words += [f"giving {size_words(int(rate))}/s"] if rate else []
        words += [f"{size_words(given)} given"] if given else []
        state = "paused" if line.is_paused else "serving" if line.is_served else "stopped"
        entries.append(Entry(name, f"/sharing/{name}", state, " · ".join(words)))
    return Glance(entries=entries, total=total)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
