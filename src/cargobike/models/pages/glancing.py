"""Models on the start page and in search."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from cargobike.core.values.times import on_calendar
from cargobike.models.catalogue.catalogue import Catalogue, Model
from cargobike.models.catalogue.summary import Summary, decode_summary
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document
from cargobike.ui.web.state import ServerState


def newest_models(state: ServerState) -> list[tuple[Model, int, bytes]]:
    """Return all models by name, each with the number and summary of its newest version; not to be changed."""
    return state.lately("models.newest", lambda: Catalogue(state.project).newest())


def model_card(state: ServerState) -> Card:
    """Make the card of the newest models."""
    return Card(
        name="models",
        title="Newest models",
        address="/models",
        place=50,
        look=lambda: _look(state),
        empty="No models yet. Keep the best trial of an experiment as one:",
        command="cargobike models register digits --trial last",
    )


def documents(state: ServerState) -> Iterator[Document]:
    """List all models for search, each in its newest version."""
    for model, version, summary in _newest(state):
        said = model.state
        yield Document(
            kind="model",
            name=model.name,
            address=f"/models/{model.name}",
            text=summary.description,
            tags=(*said.tags_of(version, summary.tags), *(f"@{alias}" for alias in said.aliases)),
            words=f"{summary.flavour} {summary.user} {' '.join(summary.metrics)} {summary.experiment}",
            at=summary.at,
        )


def _newest(state: ServerState) -> list[tuple[Model, int, Summary]]:
    return [(model, version, decode_summary(data)) for model, version, data in newest_models(state)]


def _look(state: ServerState) -> Glance:
    models = _newest(state)
    newest = heapq.nlargest(MOST_ENTRIES, models, key=lambda one: one[2].at)
    return Glance(entries=[_entry(*one) for one in newest], total=len(models))


def _entry(model: Model, version: int, summary: Summary) -> Entry:
    aliases = "".join(f" @{alias}" for alias in model.state.aliases_of(version))
    metrics = ", ".join(f"{name} {float(value):.4g}" for name, value in list(summary.metrics.items())[:3])
    return Entry(
        title=f"{model.name}:{version}{aliases}",
        address=f"/models/{model.name}/{version}",
        text=metrics or summary.description[:120],
        at=on_calendar(summary.at).isoformat(timespec="seconds"),
    )
