"""The page of lineage, and the answer behind it, over the edges of all products."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from cargobike import data, experiment, features, project
from cargobike.core.asked import Asked, Feeding
from cargobike.core.facts import ExperimentStarted
from cargobike.store.journal.journal import JournalWriter
from cargobike.ui.answers import LineageAnswer
from cargobike.ui.web.answering import model_of
from support.sample_records import HOSTILE
from support.web_project import client_of


def _train(data: Any) -> float:
    return float(len(data))


@pytest.fixture
def experiment_id() -> str:
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0]})
    view = features.create_view("team_value", features=["budget"], label="value")
    dataset = view.create_training_dataset("season", {"team_id": [1, 2], "at": ["2026-02-01"] * 2, "value": [1.0, 2.0]})
    result = experiment.launch(_train, {}, data=dataset, num_trials=1, workers=0, quiet=True)
    return str(result.id)


@pytest.fixture
def client(experiment_id: str) -> TestClient:
    return client_of(project.current())


def links(page: str) -> list[str]:
    content = page.partition("<main")[2].partition("</main>")[0]
    return [html.unescape(address) for address in re.findall(r'href="([^"]*)"', content)]


def test_the_answer_leads_in_both_directions(client: TestClient, experiment_id: str) -> None:
    answer = client.get("/api/v1/lineage/dataset/season", params={"version": "1"}).json()
    model_of(LineageAnswer).model_validate(answer)
    assert [step["source"]["name"] for step in answer["came_from"]] == ["team_value", "teams", "teams"]
    (use,) = answer["used_by"]
    assert use["made"]["page"] == f"/experiments/{experiment_id}"
    assert (use["relation"], use["detail"]) == ("trained on", "part train")
    assert (answer["total_came_from"], answer["total_used_by"]) == (3, 1)
    cut = client.get("/api/v1/lineage/group/teams", params={"limit": 1}).json()
    assert (len(cut["used_by"]), cut["total_used_by"]) == (1, 4)
    refused = client.get("/api/v1/lineage/group/temas")
    assert (refused.status_code, "Did you mean 'teams'?" in refused.text) == (404, True)


def test_every_link_of_the_page_leads_somewhere(client: TestClient, experiment_id: str) -> None:
    page = client.get("/lineage/group/teams").text
    found = links(page)
    assert f"/experiments/{experiment_id}" in found
    assert len(found) >= 5
    for address in set(found):
        assert client.get(address).status_code == 200, address
    assert page.count("<ul") == page.count("</ul>")
    assert len(re.findall("<li[ >]", page)) == page.count("</li>")


def test_pages_of_things_lead_to_their_lineage(client: TestClient, experiment_id: str) -> None:
    data.write({"x": [1.0]}, "a.b-c")
    pages = {
        "/features/teams": "/lineage/group/teams?version=1",
        f"/experiments/{experiment_id}": f"/lineage/experiment/{experiment_id}",
        "/data/a.b-c:1": "/lineage/table/a.b-c?version=1",
    }
    for page, lineage in pages.items():
        assert lineage in links(client.get(page).text), page
        assert client.get(lineage).status_code == 200


def test_what_has_no_lineage_yet_has_a_page_that_says_so(client: TestClient) -> None:
    answer = client.get("/lineage/table/alone", params={"version": "1"})
    assert answer.status_code == 200
    assert "No table called &#39;alone:1&#39; was made from anything" in answer.text
    assert answer.text.count("Nothing that is recorded.") == 2


def test_a_damaged_thing_hides_nothing_else(client: TestClient, experiment_id: str) -> None:
    (project.current().root / "views" / "team_value" / "1" / "view.json").write_bytes(b"{")
    page = client.get("/lineage/dataset/season")
    assert page.status_code == 200
    assert "What features knows is missing here" in page.text
    assert experiment_id in page.text
    answer = client.get("/api/v1/lineage/dataset/season").json()
    assert (len(answer["problems"]), answer["total_used_by"]) == (1, 1)
    assert client.get("/features/teams").status_code == 200


def test_names_are_shown_and_never_run(client: TestClient) -> None:
    asked = Asked(feeding=Feeding(kind=HOSTILE, source=HOSTILE, version=HOSTILE[:10], part=HOSTILE))
    folder = project.current().experiment("20270101-000000-evil")
    with JournalWriter(folder.journal) as writer:
        writer.append([ExperimentStarted(at=1.0, id=folder.id, asked=asked)])
    page = client.get(f"/lineage/experiment/{folder.id}").text
    assert "&lt;img src=x" in page
    assert "<img" not in page
    assert "<script>alert" not in page
    assert client.get(f"/lineage/{HOSTILE.replace('/', '')[:20]}/x").status_code == 200
