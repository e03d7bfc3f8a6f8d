"""The error of a run that failed says which rank, where, and what it printed last."""

from __future__ import annotations

from cargobike import project
from cargobike.core.facts import AttemptStarted, TrialEnded, TrialSuggested, WorkerJoined
from cargobike.errors import TrialFailedError
from cargobike.experiments.reading import read_record
from cargobike.experiments.results.failure import failure_of
from cargobike.experiments.results.result import Result
from cargobike.testing.stores import JournalBuilder

TRACEBACK = "Traceback (most recent call last):\n  File 'train.py', line 3\nValueError: no"


def failure(workers: tuple[str, ...], failed: str, error: str) -> TrialFailedError:
    """Return the error for a gang of which one worker failed, on hosts `host0`, `host1` and so on."""
    journal = JournalBuilder(project.prepare(), "20270101-000000-aaaa")
    for number, name in enumerate(workers):
        journal.add(WorkerJoined(at=journal.tick(), worker=name, host=f"host{number}"))
    journal.add(TrialSuggested(at=journal.tick(), trial=0, params={}))
    journal.add(AttemptStarted(at=journal.tick(), trial=0, attempt=1, workers=workers))
    journal.add(TrialEnded(at=journal.tick(), trial=0, state="failed", error=error, worker=failed))
    journal.end()
    trial = journal.folder.trial(0)
    trial.root.mkdir(parents=True)
    for rank in range(len(workers)):
        trial.output("stdout", rank).write_text("".join(f"line {line} of {rank}\n" for line in range(30)))
        trial.output("stderr", rank).write_text(f"warning of {rank}\n")
    result = Result.from_record(read_record(journal.folder), journal.folder)
    return failure_of(result, result.failures[0])


def test_of_a_gang_it_names_the_rank_that_failed() -> None:
    error = failure(("w0", "w1"), "w1", f"rank 1 on host1 (last step 3): {TRACEBACK}\nLast output:\nline 29 of 1")
    assert (error.experiment, error.trial, error.rank, error.host) == ("20270101-000000-aaaa", 0, 1, "host1")
    assert error.traceback == TRACEBACK
    lines = error.log_tail.splitlines()
    assert (len(lines), lines[0], lines[-2:]) == (21, "line 10 of 1", ["line 29 of 1", "warning of 1"])
    assert error.result.trials[error.trial].error in str(error)


def test_a_single_worker_is_rank_0_also_in_old_journals() -> None:
    error = failure(("w0",), "", TRACEBACK)
    assert (error.rank, error.host, error.traceback) == (0, "host0", TRACEBACK)


def test_where_no_single_rank_is_to_blame_there_is_none() -> None:
    error = failure(("w0", "w1"), "", "gave up after 3 lost attempts")
    assert (error.rank, error.host, error.traceback) == (None, "", "")
    assert "warning of 0" in error.log_tail
