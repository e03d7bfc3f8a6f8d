"""Lines that hold certain bytes are found in blocks of any size, and only if they are whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cargobike.core.errors import StoreError
from cargobike.core.facts import AnyFact, ExperimentEnded, ExperimentResumed, Reported
from cargobike.store.journal import scanning
from cargobike.store.journal.journal import JournalWriter
from cargobike.store.journal.scanning import lines_with

WANTED = b'"fact":"experiment-resumed"'
FACTS: list[AnyFact] = [
    Reported(at=1.0, trial=0, step=1, metrics={"loss": 0.5}, number=1),
    ExperimentResumed(at=2.0, num_trials=7),
    ExperimentEnded(at=3.0, state="failed", reason='it said "fact":"experiment-resumed"'),
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(FACTS), max_size=12), st.integers(1, 400), st.integers(0, 30))
def test_what_blocks_find_is_what_a_look_at_each_line_finds(
    tmp_path: Path, kinds: list[AnyFact], block: int, torn: int
) -> None:
    path = tmp_path / "journal.jsonl"
    path.unlink(missing_ok=True)
    with JournalWriter(path) as writer:
        for fact in kinds:
            writer.append([fact])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - torn])
    wanted = [line for line in data[: len(data) - torn].split(b"\n")[:-1] if WANTED in line]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanning, "_BLOCK_BYTES", block)
        assert list(lines_with(path, WANTED)) == wanted
    assert len(wanted) in (kinds.count(FACTS[1]), kinds.count(FACTS[1]) - 1)


def test_a_damaged_line_is_not_among_them(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as writer:
        writer.append([ExperimentResumed(at=1.0, num_trials=7), ExperimentResumed(at=2.0, num_trials=8)])
    path.write_bytes(path.read_bytes().replace(b'"num_trials":7', b'"num_trials":9'))
    (line,) = lines_with(path, WANTED)
    assert b'"num_trials":8' in line


def test_a_journal_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Cannot read the journal"):
        list(lines_with(tmp_path / "journal.jsonl", WANTED))
