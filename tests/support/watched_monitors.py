"""Monitors with windows, errors and alarms, made without a process: for pages and commands."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cargobike.core.layout import ProjectFolder
from cargobike.monitoring import Reference
from cargobike.monitoring.facts import ErrorMeasured, Hooks, MonitorStarted, Watched, WatcherEnded, WindowChoice
from cargobike.monitoring.record import MonitorFolder, folder_of
from cargobike.monitoring.running.keeping import Keeper, Kept
from cargobike.monitoring.watching.watching import Watching
from support.watched_rows import START, logged, small_reference, usual

HOSTILE_NAME = "<script>alert('owned')</script>"


def make_monitor(
    project: ProjectFolder, name: str = "digits", *, quiet: int = 6, moved: int = 4, extra: tuple[str, ...] = ()
) -> MonitorFolder:
    """Make a monitor with some usual windows, then with some in which ages have moved."""
    folder = folder_of(project, name)
    random = np.random.default_rng(1)
    more = {column: random.standard_normal(1000) for column in extra}
    reference = Reference({**usual(1000), **more}, window=50) if extra else small_reference()
    watched = Watched(
        subject=name,
        window=WindowChoice(rows=50),
        alarm="2 of 3",
        reference="table people:3",
        columns=tuple(reference.columns),
        hooks=Hooks(webhook="https://user:sesame@hooks.example.com/x"),
    )
    keeper = Keeper(folder)
    watching = Watching(watched, reference)
    facts = [MonitorStarted(at=START, id=name, watched=watched)]
    keeper.commit(Kept(), facts)
    reference.save(folder.reference)
    for number in range(quiet + moved):
        rows = logged(
            50, seed=10 + number, at=START + 50 * number, first=50 * number, moved=0.0 if number < quiet else 2.0
        )
        for column in extra:
            rows = rows.append_column(f"input.{column}", pa.array(random.standard_normal(50)))
        outcome = watching.feed(rows, str(number), START + 50 * number + 60)
        keeper.commit(Kept(watching=watching.record()), outcome.facts, outcome.judgements)
    errors = [
        ErrorMeasured(
            at=START + 1000 + number,
            number=number + 1,
            labels=number + 1,
            metrics={"error": 0.1 + 0.02 * number},
            rows=40,
            first_at=START + 100 * number,
            last_at=START + 100 * number + 90,
        )
        for number in range(5)
    ]
    keeper.commit(keeper.kept, [*errors, WatcherEnded(at=START + 2000, reason="stopped")])
    keeper.close()
    return folder
