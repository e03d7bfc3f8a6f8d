"""What each product says on the start page and gives to search, from one project with some of everything."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from cargobike import data, features, models, project
from cargobike.core.layout import ProjectFolder
from cargobike.pipelines.facts import RunEnded, RunStarted, RunState
from cargobike.serving.facts import DeploymentStarted
from cargobike.serving.specification import Specification
from cargobike.store.journal.journal import JournalWriter
from support.watched_monitors import make_monitor
from support.web_project import client_of, sample_project

PATIENCE_S = 60.0


def _twice(rows: list[float]) -> list[float]:
    return [2 * row for row in rows]


def _journal(folder: ProjectFolder, path: str, *facts: object) -> None:
    file = folder.root / path / "journal.jsonl"
    file.parent.mkdir(parents=True)
    with JournalWriter(file) as journal:
        journal.append(facts)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = sample_project(tmp_path_factory.mktemp("project"))
    project.use(folder.root)
    try:
        data.write({"amount": [1.0], "merchant": ["a"]}, "payments")
        group = features.create_group("teams", key="team_id", event_time="at", description="Budgets", tags=["money"])
        group.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0]})
        view = features.create_view("team_value", features=["budget"], label="value")
        view.create_training_dataset("season", {"team_id": [1, 2], "at": ["2026-02-01"] * 2, "value": [1.0, 2.0]})
        models.register("digits", _twice, metrics={"accuracy": 0.9}, example=[1.0], tags=["vision"])
        models.get("digits").promote("champion")
    finally:
        project.use(None)
    make_monitor(folder)
    specification = Specification(name="shop", model="digits@champion")
    _journal(folder, "deployments/shop", DeploymentStarted(at=5.0, id="shop", specification=specification))
    _journal(
        folder,
        "runs/20270115-080000-abcd",
        RunStarted(at=7.0, id="20270115-080000-abcd", pipeline="retrain"),
        RunEnded(at=8.0, state=RunState.FAILED, error="ValueError: no rows"),
    )
    with client_of(folder) as found:
        deadline = time.monotonic() + PATIENCE_S
        while "data-unread" in found.get("/").text and time.monotonic() < deadline:
            time.sleep(0.05)
        yield found


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ("alarms", "digits"),
        ("experiments", "of 12 trials"),
        ("deployments", "digits@champion"),
        ("pipelines", "ValueError: no rows"),
        ("models", "digits:1 @champion"),
        ("data", "1 rows, 2 columns"),
        ("features", "2 rows of the view team_value"),
        ("sharing", "cargobike share publish"),
    ],
)
def test_every_product_says_what_goes_on(client: TestClient, card: str, words: str) -> None:
    page = client.get("/").text
    assert words in page.partition(f'id="card-{card}"')[2].partition("</section>")[0]


def test_what_needs_a_person_comes_first(client: TestClient) -> None:
    cards = client.get("/").text.partition('class="overview"')[2].split("<section ")[1:]
    assert ["urgent" in card.partition(">")[0] for card in cards].index(
        False
    ) == 3  # alarms, lost deployment, failed run
    assert 'id="card-sharing"' in cards[-1]


@pytest.mark.parametrize(
    ("words", "kind", "page", "where"),
    [
        ("payments", "table", "/data/payments:1", "name"),
        ("merchant", "table", "/data/payments:1", "column"),
        ("money", "group", "/features/teams", "tag"),
        ("budgets", "group", "/features/teams", "description"),
        ("team_value", "view", "/feature-views/team_value", "name"),
        ("season", "dataset", "/training-datasets/season", "name"),
        ("@champion vision", "model", "/models/digits", "tag"),
        ("shop", "deployment", "/deployments/shop", "name"),
        ("watches digits", "monitor", "/monitors/digits", "description"),
        ("retrain", "run", "/pipelines/runs/20270115-080000-abcd", "description"),
    ],
)
def test_every_product_is_found(client: TestClient, words: str, kind: str, page: str, where: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := client.get("/api/v1/search", params={"q": words}).json())["is_complete"]:
        assert time.monotonic() < deadline
    assert found["problems"] == []
    hits = [(hit["kind"], hit["page"], hit["where"]) for hit in found["hits"] if hit["kind"] == kind]
    assert hits == [(kind, page, where)]
    assert client.get(page).status_code == 200
