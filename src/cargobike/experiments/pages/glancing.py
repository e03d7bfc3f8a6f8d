"""Experiments on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cargobike.core.records import ExperimentState
from cargobike.experiments.index.index import ExperimentRow
from cargobike.experiments.pages.describing import utc
from cargobike.experiments.pages.listing import Listing
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document

_LATEST: Final = 3


def experiment_card(listing: Listing) -> Card:
    """Make the card of experiments: those that run, then the latest that have ended."""
    return Card(
        name="experiments",
        title="Experiments",
        address="/experiments",
        place=20,
        look=lambda: _look(listing),
        empty="No experiments yet. This one is small and real:",
        command="cargobike demo",
    )


def documents(listing: Listing) -> Iterator[Document]:
    """List all experiments for search."""
    for row in listing.experiments():
        header = row.header
        yield Document(
            kind="experiment",
            name=header.name or row.id,
            address=f"/experiments/{row.id}",
            text=header.description,
            tags=row.tags,
            columns=[parameter["name"] for parameter in header.space or () if "name" in parameter],
            words=" ".join((row.id, header.function, header.optimizer, header.user, row.state)),
            at=row.started_at,
        )


def _look(listing: Listing) -> Glance:
    rows = listing.experiments()
    running = [row for row in rows if row.state is ExperimentState.RUNNING]
    ended = [row for row in rows[: MOST_ENTRIES + len(running)] if row.state is not ExperimentState.RUNNING]
    shown = [*running, *ended[: max(_LATEST, MOST_ENTRIES - len(running))]]
    return Glance(
        entries=[_entry(row) for row in shown[: 2 * MOST_ENTRIES]],
        headline=len(running),
        words="experiment runs" if len(running) == 1 else "experiments run",
        total=len(rows),
    )


def _entry(row: ExperimentRow) -> Entry:
    header, is_running = row.header, row.state is ExperimentState.RUNNING
    planned = header.num_trials
    trials = f"{row.trials_done} of {planned} trials" if planned else f"{row.trials_done} trials"
    best = "" if row.best_value is None else f", best {row.metric or 'value'} {row.best_value:.5g}"
    return Entry(
        title=header.name or row.id,
        address=f"/experiments/{row.id}",
        state=row.state,
        text=f"{trials}{best}",
        at=utc(row.started_at),
        share=min(1.0, row.trials_done / planned) if is_running and planned else None,
    )
