"""Deployments on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.errors import StoreError
from cargobike.serving.pages import describing
from cargobike.serving.pages.answers import DeploymentLine
from cargobike.serving.record import all_records
from cargobike.serving.status import served_version
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document
from cargobike.ui.web.state import ServerState

_AT_WORK = frozenset({"starting", "serving", "releasing", "stopping"})
_ORDER = ("lost", "releasing", "starting", "serving", "stopping", "unreadable", "stopped")


def known_deployments(state: ServerState) -> list[describing.Known]:
    """Return all deployments by name with what their journals say; not to be changed."""
    return state.lately("serving.records", lambda: list(all_records(state.project)))


def deployment_card(state: ServerState) -> Card:
    """Make the card of deployments: those that serve, with their traffic."""
    return Card(
        name="deployments",
        title="Deployments",
        address="/deployments",
        place=30,
        look=lambda: _look(state),
        empty="Nothing is served yet. Serve a model:",
        command="cargobike serve digits@champion",
    )


def documents(state: ServerState) -> Iterator[Document]:
    """List all deployments for search."""
    for name, record in known_deployments(state):
        if isinstance(record, StoreError):
            yield Document("deployment", name, f"/deployments/{name}", text=str(record)[:200])
            continue
        model, view = record.specification.model, record.specification.view
        text, words = f"serves {model}", f"{view} {'stopped' if record.is_stopped else ''}".strip()
        yield Document("deployment", name, f"/deployments/{name}", text=text, words=words, at=record.started_at)


def _look(state: ServerState) -> Glance:
    lines = [describing.line_of(state.project, name, record) for name, record in known_deployments(state)]
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
