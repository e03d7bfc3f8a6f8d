"""The pages of views and training datasets, and the answers behind them."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from cargobike import experiment, features, project
from cargobike.features.pages.view_answers import DatasetDetails, DatasetPage, ViewDetails, ViewPage
from cargobike.ui.web.answering import model_of
from support.web_project import client_of


def per_seat(budget: Any, seats: Any) -> Any:
    return budget / np.maximum(seats, 1)


def _train(data: Any) -> float:
    return float(len(data))


@pytest.fixture
def client() -> TestClient:
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0], "size": [3, 4]})
    view = features.create_view("team_value", features=["budget"], label="value")
    view = features.create_view(
        "team_value",
        features=["budget", "size"],
        label="value",
        transformations={"size": "standardize"},
        on_demand={"per_seat": per_seat},
        description="<b>What</b> a model takes",
    )
    labels = {
        "team_id": [1, 2] * 5,
        "at": ["2026-02-01"] * 10,
        "value": [float(number) for number in range(10)],
        "seats": [100.0] * 10,
    }
    for _ in range(2):
        dataset = view.create_training_dataset("season", labels, split={"train": 0.8, "test": 0.2}, seed=3)
    experiment.launch(_train, {}, data=dataset, num_trials=1, workers=0, quiet=True)
    return client_of(project.current())


def links(page: str) -> set[str]:
    content = page.partition("<main")[2].partition("</main>")[0]
    return {html.unescape(address) for address in re.findall(r'href="([^"]*)"', content)}


def test_views_are_listed_and_shown(client: TestClient) -> None:
    answer = client.get("/api/v1/feature-views").json()
    model_of(ViewPage).model_validate(answer)
    assert [(view["name"], view["version"], view["features"]) for view in answer["views"]] == [
        ("team_value", 2, ["budget", "size", "per_seat"])
    ]
    details = client.get("/api/v1/feature-views/team_value").json()
    model_of(ViewDetails).model_validate(details)
    assert details["versions"] == [1, 2]
    assert [(one["name"], one["type"], one["group"], one["transformation"]) for one in details["columns"]] == [
        ("budget", "double", "teams", ""),
        ("size", "int64", "teams", "standardize"),
        ("per_seat", "", "", ""),
    ]
    assert details["fitted_for"] == ["season:2", "season:1"]
    assert [use["thing"]["version"] for use in details["used_by"]] == ["1", "2"]
    assert client.get("/api/v1/feature-views/team_value", params={"version": 1}).json()["used_by"] == []


def test_training_datasets_are_listed_and_shown(client: TestClient) -> None:
    answer = client.get("/api/v1/training-datasets", params={"limit": 1}).json()
    model_of(DatasetPage).model_validate(answer)
    assert ([one["id"] for one in answer["datasets"]], answer["total"]) == (["season:2"], 2)
    details = client.get("/api/v1/training-datasets/season").json()
    model_of(DatasetDetails).model_validate(details)
    assert details["dataset"]["parts"] == {"train": 8, "test": 2}
    assert [(part["name"], part["is_learned_from"]) for part in details["part_list"]] == [
        ("train", True),
        ("test", False),
    ]
    assert details["commits"] == [{"group": "teams", "version": 1, "commit": 0}]
    assert [one["version"] for one in details["versions"]] == [2, 1]
    (use,) = details["used_by"]
    assert (use["thing"]["kind"], use["relation"], use["detail"]) == ("experiment", "trained on", "part train")
    assert client.get("/api/v1/training-datasets/season", params={"version": 1}).json()["used_by"] == []


@pytest.mark.parametrize(
    "address", ["/feature-views", "/feature-views/team_value", "/training-datasets", "/training-datasets/season"]
)
def test_pages_hold_what_the_answers_do_and_lead_on(client: TestClient, address: str) -> None:
    page = client.get(address)
    assert page.status_code == 200
    assert "<b>" not in page.text
    assert "team_value" in page.text
    assert len(links(page.text)) >= 4
    for link in links(page.text):
        assert client.get(link).status_code == 200, link


def test_a_view_shows_words_as_they_are(client: TestClient) -> None:
    page = client.get("/feature-views/team_value").text
    assert "&lt;b&gt;What&lt;/b&gt; a model takes" in page
    assert ":per_seat</code>" in page
    assert 'href="/training-datasets/season?version=2"' in client.get("/features/teams").text


@pytest.mark.parametrize("path", ["feature-views/nothing", "training-datasets/nothing", "feature-views/..%2F..%2Fetc"])
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(f"/{path}").status_code == 404
    assert client.get(f"/api/v1/{path}").status_code == 404


def test_an_empty_project_says_how_to_begin() -> None:
    client = client_of(project.current())
    assert "features.create_view" in client.get("/feature-views").text
    assert "create_training_dataset" in client.get("/training-datasets").text
