"""Facts are read as they are asked for, so that a journal may be larger than memory."""

from __future__ import annotations

from pathlib import Path

from cargobike.core.facts import AnyFact, ExperimentResumed, Reported, TrialSuggested
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.reading import facts_from, facts_of, journal_reader, resumptions
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact

ID = "20270115-080000-test"
SPACE = [{"name": "lr", "type": "DOUBLE", "low": 0.1, "high": 0.7}]


def written(tmp_path: Path, facts: list[AnyFact]) -> ExperimentFolder:
    folder = ExperimentFolder(tmp_path / "experiments" / ID)
    with JournalWriter(folder.journal) as writer:
        writer.append(facts)
    return folder


def reports(count: int) -> list[AnyFact]:
    return [Reported(at=3.0, trial=0, step=step, metrics={"loss": 0.5}, number=step + 1) for step in range(count)]


def test_no_more_is_read_than_was_asked_for(tmp_path: Path) -> None:
    beginning: list[AnyFact] = [first_fact(at=1.0, id=ID), TrialSuggested(at=2.0, trial=0, params={})]
    folder = written(tmp_path, [*beginning, *reports(60_000)])
    size = folder.journal.stat().st_size
    assert size > 7 << 20
    reader = journal_reader(folder)
    facts = facts_from(reader)
    assert [next(facts), next(facts)] == beginning
    assert reader.offset < 3 << 20
    assert sum(1 for _ in facts) == 60_000
    assert reader.offset == size


def test_how_an_experiment_was_taken_up_is_found_without_the_rest(tmp_path: Path) -> None:
    taken_up: list[AnyFact] = [
        ExperimentResumed(at=4.0, num_trials=9),
        ExperimentResumed(at=5.0, num_trials=12, space=SPACE, defaults={"depth": 2}),
    ]
    other = TrialSuggested(at=2.0, trial=0, params={}, info={"fact": "experiment-resumed"})
    folder = written(
        tmp_path, [first_fact(at=1.0, id=ID), other, *reports(5), taken_up[0], *reports(5), taken_up[1], *reports(5)]
    )
    assert resumptions(folder) == taken_up
    assert [fact for fact in facts_of(folder) if isinstance(fact, ExperimentResumed)] == taken_up
