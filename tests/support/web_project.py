"""Projects for tests of the server: journals written as a driver would have written them, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from starlette.testclient import TestClient

from cargobike.core.facts import AnyFact, ExperimentEnded, ExperimentStarted
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.store.journal.journal import JournalWriter
from cargobike.ui.web.access import Access
from cargobike.ui.web.app import create_app
from cargobike.ui.web.state import ServerState
from support.sample_records import Story, hostile_story, lively_story

LIVELY, HOSTILE_ID, RUNNING = "20270115-080000-live", "20270115-080001-evil", "20270115-080002-runs"
ADDRESS = "http://127.0.0.1:8520"
ASKING = {"content-type": "application/json", "x-cargobike": "1"}


def write(folder: ExperimentFolder, facts: Sequence[AnyFact]) -> None:
    """Append facts to an experiment's journal, under the experiment's own id."""
    told = [
        msgspec.structs.replace(fact, id=folder.id) if isinstance(fact, ExperimentStarted) else fact for fact in facts
    ]
    with JournalWriter(folder.journal) as journal:
        journal.append(told)


def ended(story: Story) -> list[AnyFact]:
    """Return a story's facts with an end."""
    return [*story.facts, ExperimentEnded(at=story.tick(), state="completed")]


def sample_project(root: Path) -> ProjectFolder:
    """Make a project with a calm experiment, a hostile one, and one that has not ended."""
    project = ProjectFolder(root)
    write(project.experiment(LIVELY), ended(lively_story()))
    write(project.experiment(HOSTILE_ID), ended(hostile_story()))
    running = lively_story(12)
    write(project.experiment(RUNNING), running.facts)
    return project


def client_of(project: ProjectFolder, access: Access | None = None) -> TestClient:
    """Return a client of a server of this project; nothing listens anywhere."""
    return TestClient(create_app(ServerState.of(project, access)), base_url=ADDRESS, raise_server_exceptions=False)
