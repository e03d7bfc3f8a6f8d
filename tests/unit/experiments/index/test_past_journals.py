"""Journals that were written by earlier versions, kept as they were, and read by this one.

Never change a file here. When the journal changes, add one that the version before the change has written.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.experiments.index.opening import open_index
from cargobike.experiments.reading import metrics_of, read_record
from cargobike.experiments.tensorboard.curves_view import write_curves
from cargobike.store.journal.journal import read_journal
from cargobike.store.journal.lines import seal
from cargobike.testing.stores import assert_rows_equal_record

PAST = Path(__file__).parent / "journals"

TOLD: dict[str, dict[str, Any]] = {
    "v1-first.jsonl": {
        "counts": {"completed": 2, "failed": 1},
        "best": (2, {"x": 3}, 9.0),
        "points": [(0, 0.0), (1, 3.0), (2, 6.0)],
    },
    "v1-asha-resumed.jsonl": {
        "counts": {"completed": 3, "stopped": 8},
        "best": (8, {"x": 0.11771744285177298}, 0.11771744285177298),
        "points": 9,
    },
    "v1-two-goals.jsonl": {"counts": {"completed": 3}, "best": None, "points": []},
    "v3-fed-with-a-dataset.jsonl": {
        "counts": {"completed": 1},
        "best": (0, {}, 16.0),
        "points": [],
        "origins": [("dataset", "team_value", "2", "trained on", "part train")],
    },
    "v3-fed-with-a-table.jsonl": {
        "counts": {"completed": 1},
        "best": (0, {}, 3.0),
        "points": [],
        "origins": [("table", "points", "2", "trained on", "")],
    },
    "v2-first.jsonl": {
        "counts": {"completed": 2, "failed": 1},
        "best": (2, {"x": 3}, 9.0),
        "points": [(0, 0.0), (1, 3.0), (2, 6.0)],
    },
}


@pytest.fixture(params=sorted(path.name for path in PAST.glob("*.jsonl")))
def past(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ExperimentFolder, dict[str, Any]]:
    source = PAST / request.param
    first = next(iter(read_journal(source, EXPERIMENT_FACTS)))
    folder = ProjectFolder(tmp_path).experiment(first.id)  # type: ignore[union-attr]  # a journal begins with its start
    folder.root.mkdir(parents=True)
    shutil.copyfile(source, folder.journal)
    return folder, TOLD[request.param]


def test_a_past_journal_tells_what_it_told(past: tuple[ExperimentFolder, dict[str, Any]]) -> None:
    folder, told = past
    record = read_record(folder)
    assert record.state == "completed"
    assert {state.value: count for state, count in record.counts.items() if count} == told["counts"]
    best = record.best
    assert (None if best is None else (best.number, best.params, best.value)) == told["best"]
    curve = metrics_of(folder.journal, best.number).get(record.objective or "") if best is not None else None
    points = list(curve or ())
    assert (len(points) if isinstance(told["points"], int) else points) == told["points"]


def test_a_past_journal_is_still_written_like_that(past: tuple[ExperimentFolder, dict[str, Any]]) -> None:
    """What is read and written again is what a reader of that version understands."""
    folder, _ = past
    again = folder.journal.with_name("again.jsonl")
    again.write_bytes(b"".join(seal(fact) for fact in read_journal(folder.journal, EXPERIMENT_FACTS)))
    assert list(read_journal(again, EXPERIMENT_FACTS)) == list(read_journal(folder.journal, EXPERIMENT_FACTS))


def test_a_past_journal_is_listed_and_shown(past: tuple[ExperimentFolder, dict[str, Any]], tmp_path: Path) -> None:
    folder, told = past
    with open_index(ProjectFolder(tmp_path)) as index:
        index.sync()
        assert_rows_equal_record(index, folder)
        origins = [(one, origin) for one, _, origin in index.origins()]
        assert origins == [(folder.id, origin) for origin in told.get("origins", [])]
    write_curves(folder)
