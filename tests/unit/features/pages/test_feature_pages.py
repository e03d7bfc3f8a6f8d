"""The pages of feature groups and the answers behind them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from cargobike import features, project
from cargobike.features.pages.answers import GroupDetails, GroupPage, GroupStatistics
from cargobike.ui.web.answering import model_of
from support.web_project import client_of

DAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def client() -> TestClient:
    teams = features.create_group(
        "teams", key="team_id", event_time="at", description="<b>Clubs</b>", tags=["football"]
    )
    rows = {
        "team_id": [1, 2, 3],
        "at": [DAY] * 3,
        "budget": [1.0, 2.0, None],
        "size": [3, 1, 2],
        "city": ["<i>", "b", "b"],
    }
    teams.insert(rows, message="<script>")
    features.create_group("players", key="player_id", owner="anna")
    return client_of(project.current())


def test_groups_are_listed_and_found(client: TestClient) -> None:
    answer = client.get("/api/v1/features").json()
    model_of(GroupPage).model_validate(answer)
    assert [(group["name"], group["rows"], group["commit"]) for group in answer["groups"]] == [
        ("players", 0, -1),
        ("teams", 3, 0),
    ]
    found = client.get("/api/v1/features", params={"words": "FOOT"}).json()
    assert [group["name"] for group in found["groups"]] == ["teams"]
    page = client.get("/features").text
    assert '<a href="/features" aria-current="page">Features</a>' in page
    assert "&lt;b&gt;Clubs&lt;/b&gt;" in page
    assert "No group has this" in client.get("/features", params={"words": "<nothing>"}).text


def test_one_group_is_shown_with_figures_and_commits(client: TestClient) -> None:
    answer = client.get("/api/v1/features/teams").json()
    model_of(GroupDetails).model_validate(answer)
    assert [column["role"] for column in answer["columns"]] == ["key", "event time", "feature", "feature", "feature"]
    assert answer["commits"][0]["inserted"] == 3
    page = client.get("/features/teams").text
    assert page.count("<svg viewBox") >= 5
    assert "&lt;script&gt;" in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert "Nothing was inserted yet" in client.get("/features/players").text


def test_what_was_made_from_a_group_is_told(client: TestClient) -> None:
    assert client.get("/api/v1/features/teams").json()["used_by"] == []
    assert "Used by" not in client.get("/features/teams").text
    features.create_view("value", features=["teams.budget", "teams.size"], label="worth")
    used = client.get("/api/v1/features/teams").json()["used_by"]
    page = "/feature-views/value?version=1"
    assert used == [{"kind": "view", "name": "value", "version": 1, "detail": "budget, size", "page": page}]
    assert "value:1" in client.get("/features/teams").text


def test_statistics_are_answered(client: TestClient) -> None:
    answer = client.get("/api/v1/features/teams/statistics").json()
    model_of(GroupStatistics).model_validate(answer)
    assert (answer["rows"], answer["columns"]["budget"]["mean"], answer["columns"]["budget"]["nulls"]) == (3, 1.5, 1)
    assert answer["columns"]["city"]["common"] == {"<i>": 1, "b": 2}
    assert client.get("/api/v1/features/players/statistics").status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("features/team", 404),
        ("features/..%2Fdata", 404),
        ("features/teams?version=7", 404),
        ("features/teams/statistics?as_of=9", 404),
        ("features/teams/statistics?as_of=soon", 422),
        ("features/teams?version=0", 422),
    ],
)
def test_what_is_not_there_is_refused(client: TestClient, path: str, status: int) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == status
    assert answer.json()["detail"]
