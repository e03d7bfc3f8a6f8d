"""Deployments on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.serving.pages import describing
from cargobike.serving.pages.answers import DeploymentLine
from cargobike.serving.record import all_folders, find_record
from cargobike.serving.status import served_version
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document

_AT_WORK = frozenset({"starting", "serving", "releasing", "stopping"})
_ORDER = ("lost", "releasing", "starting", "serving", "stopping", "unreadable", "stopped")


def deployment_card(project: ProjectFolder) -> Card:
    """Make the card of deployments: those that serve, with their traffic."""
    return Card(
        name="deployments",
        title="Deployments",
        address="/deployments",
        place=30,
        look=lambda: _look(project),
        empty="Nothing is served yet. Serve a model:",
        command="cargobike serve digits@champion",
    )


def documents(project: ProjectFolder) -> Iterator[Document]:
    """List all deployments for search."""
    for folder in all_folders(project):
        try:
            record = find_record(project, folder.id)
        except CargobikeError as error:
            yield Document("deployment", folder.id, f"/deployments/{folder.id}", text=str(error)[:200])
            continue
        model, view = record.specification.model, record.specification.view
        yield Document("deployment", folder.id, f"/deployments/{folder.id}", text=f"serves {model}", words=view)


def _look(project: ProjectFolder) -> Glance:
    lines = describing.listed(project, "", 0, 10**9).deployments
    lines.sort(key=lambda line: (_ORDER.index(line.state), -line.traffic.per_s, line.name))
    serving = sum(line.state in _AT_WORK for line in lines)
    lost = sum(line.state == "lost" for line in lines)
    return Glance(
        entries=[_entry(line) for line in lines[:MOST_ENTRIES]],
        headline=serving,
        words="deployment serves" if serving == 1 else "deployments serve",
        is_urgent=lost > 0,
        total=len(lines),
    )


def _entry(line: DeploymentLine) -> Entry:
    traffic = line.traffic
    words = [served_version(line.model, line.version)]
    if line.state in _AT_WORK:
        words.append(f"{traffic.per_s:.1f} requests/s")
        words += [f"p99 {traffic.p99_ms:.1f} ms"] if traffic.p99_ms is not None else []
        words += [f"{traffic.failed:,} failed"] if traffic.failed else []
    return Entry(line.name, f"/deployments/{line.name}", line.state, " · ".join(words))
