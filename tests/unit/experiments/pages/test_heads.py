"""The head of an experiment's page says the same before and after its journal was read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.pages.heads import Head, head_of
from cargobike.experiments.pages.state import ExperimentPages
from cargobike.store.files.locking import DriverLock
from cargobike.store.history.annotations import annotate
from cargobike.ui.web.state import ServerState
from support.web_project import LIVELY, RUNNING, client_of, sample_project


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    return sample_project(tmp_path)


def heads(project: ProjectFolder, experiment_id: str) -> tuple[Head, Head]:
    """Return the head from the index, and then the one from the journal."""
    state = ExperimentPages.of(ServerState.of(project))
    state.listing.catch_up()
    live = state.live.get(experiment_id)
    early, was_read = head_of(state, live, may_wait=False), live.is_read
    late = head_of(state, live, may_wait=True)
    assert (was_read, live.is_read) == (False, True)
    state.listing.close()
    return early, late


@pytest.mark.parametrize("experiment_id", [LIVELY, RUNNING])
def test_index_and_journal_tell_the_same(project: ProjectFolder, experiment_id: str) -> None:
    annotate(project.experiment(experiment_id), add=["thesis"], note="keep this one")
    early, late = heads(project, experiment_id)
    assert msgspec.structs.asdict(early.experiment) == msgspec.structs.asdict(late.experiment)
    assert early.experiment.tags == ["thesis"]
    assert [note.text for note in early.notes] == ["keep this one"]
    assert (early.notes, early.facts, early.may_stop) == (late.notes, late.facts, late.may_stop)
    assert early.strip is None
    assert late.strip is not None
    assert len(late.strip) >= late.experiment.trials


def test_an_experiment_that_runs_can_be_stopped_by_either(project: ProjectFolder) -> None:
    with DriverLock(project.experiment(RUNNING)):
        early, late = heads(project, RUNNING)
    assert early.may_stop
    assert late.may_stop


def test_a_damaged_journal_keeps_its_page_and_says_what_is_wrong(project: ProjectFolder) -> None:
    journal = project.experiment(LIVELY).journal
    lines = journal.read_bytes().split(b"\n")
    lines[10] = lines[10].replace(b"trial", b"trail")
    journal.write_bytes(b"\n".join(lines))
    with client_of(project) as client:
        client.get("/api/v1/experiments")
        for fragment in (False, True, False):
            page = client.get(f"/experiments/{LIVELY}", params={"fragment": fragment})
            assert page.status_code == 200
            assert "line 11: damaged" in page.text


def test_a_page_that_was_read_before_shows_all_trials_at_once(project: ProjectFolder) -> None:
    with client_of(project) as client:
        assert 'class="crates"' not in client.get(f"/experiments/{LIVELY}").text
        assert 'class="crates"' in client.get(f"/experiments/{LIVELY}", params={"fragment": True}).text
        assert 'class="crates"' in client.get(f"/experiments/{LIVELY}").text
