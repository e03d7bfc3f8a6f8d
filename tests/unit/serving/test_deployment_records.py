"""What the journal of a deployment says."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.serving import facts
from cargobike.serving.facts import Share
from cargobike.serving.record import find_record, fold, folder_of, read_record
from cargobike.serving.specification import Scaling, Specification
from cargobike.serving.tracing import edges
from cargobike.store.journal.journal import JournalWriter

SPECIFICATION = Specification(name="m", model="m@champion", version=3, scaling=Scaling(least=1, most=4))
STORY: list[facts.AnyServingFact] = [
    facts.DeploymentStarted(at=1.0, id="m", specification=SPECIFICATION),
    facts.SupervisorStarted(at=2.0, pid=7, host="127.0.0.1", port=8080),
    facts.ReleaseStarted(at=3.0, model_version=3),
    facts.ReplicaStarted(at=3.0, replica=1, model_version=3),
    facts.ReleaseEnded(at=4.0, model_version=3, outcome="released"),
    facts.Routed(at=4.0, routes=(Share(3),)),
    facts.Scaled(at=5.0, replicas=2, least=1, most=4, reason="more is asked for"),
    facts.ReleaseStarted(at=6.0, model_version=4, plan=facts.Plan(canary=0.1)),
    facts.ReplicaStarted(at=6.0, replica=2, model_version=4),
    facts.Routed(at=7.0, routes=(Share(3, 0.9), Share(4, 0.1))),
    facts.ReplicaEnded(at=8.0, replica=1, model_version=3, reason="was ended by SIGKILL"),
]


def write(root: Path, story: list[facts.AnyServingFact]) -> ProjectFolder:
    project = ProjectFolder(root)
    with JournalWriter(folder_of(project, "m").journal) as journal:
        journal.append(story)
    return project


def test_a_journal_tells_what_serves_and_what_is_being_brought_in(tmp_path: Path) -> None:
    record = find_record(write(tmp_path, STORY), "m")
    assert (record.current, record.previous, record.candidate, record.plan.canary) == (3, 0, 4, 0.1)
    assert (record.port, record.last_replica, record.least, record.most) == (8080, 2, 1, 4)
    assert record.routed == (3, 4)
    assert not record.is_stopped
    assert [moment.text for moment in record.history] == [
        "deployed",
        "supervised by process 7",
        "version 3 is being brought in",
        "version 3 released",
        "scaled to 2: more is asked for",
        "version 4 is being brought in",
        "replica 1 ended: was ended by SIGKILL",
    ]


@pytest.mark.parametrize(("so_far", "served"), [(1, {"3"}), (2, {"3"}), (3, {"3"}), (5, {"3"}), (8, {"3", "4"})])
def test_what_is_asked_for_is_in_use_before_it_is_loaded(tmp_path: Path, so_far: int, served: set[str]) -> None:
    project = write(tmp_path, STORY[:so_far])
    assert {edge.source.version for edge in edges(project)} == served


def test_another_version_that_is_asked_for_is_in_use_and_one_of_a_stopped_deployment_is_not(tmp_path: Path) -> None:
    changed = facts.DeploymentChanged(at=6.0, specification=replace(SPECIFICATION, version=5))
    project = write(tmp_path, [*STORY[:6], changed])
    assert {edge.source.version for edge in edges(project)} == {"3", "5"}
    with JournalWriter(folder_of(project, "m").journal) as journal:
        journal.append([facts.DeploymentStopped(at=7.0, reason="the port is taken")])
    assert {edge.source.version for edge in edges(project)} == {"3"}


def test_a_version_that_was_taken_back_leaves_the_other(tmp_path: Path) -> None:
    ended = facts.ReleaseEnded(at=9.0, model_version=4, outcome="rolled back", previous=3, reason="it is slow")
    stopped = facts.DeploymentStopped(at=10.0, reason="a user asked")
    record = find_record(write(tmp_path, [*STORY, ended, stopped]), "m")
    assert (record.current, record.candidate, record.routed, record.is_stopped) == (3, 0, (), True)
    assert [moment.text for moment in record.history][-2:] == [
        "version 4 rolled back: it is slow",
        "stopped: a user asked",
    ]


def test_every_fact_comes_back_as_it_was_written(tmp_path: Path) -> None:
    changed = facts.DeploymentChanged(at=9.0, specification=SPECIFICATION)
    story: list[facts.AnyServingFact] = [*STORY, changed, facts.FrontEnded(at=9.5, reason="was ended by SIGKILL")]
    folded, read = fold(story), read_record(folder_of(write(tmp_path, story), "m"))
    assert folded == read
    assert read is not None
    assert read.history[-1].text == "the front ended: was ended by SIGKILL"


def test_what_is_no_journal_of_a_deployment_is_refused(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    assert read_record(folder_of(project, "m")) is None
    with pytest.raises(NotFoundError, match="no deployment 'm'"):
        find_record(project, "m")
    with pytest.raises(NotFoundError, match="no deployment"):
        find_record(project, "../../etc")
    with pytest.raises(StoreError, match="begins with Routed"):
        fold([facts.Routed(at=1.0, routes=())])
