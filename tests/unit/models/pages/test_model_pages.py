"""The pages of models and the answers behind them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cargobike import models, project
from cargobike.models.pages.answers import ModelDetails, ModelPage, VersionDetails
from cargobike.models.pages.drawing import charts
from cargobike.ui.web.answering import model_of
from support.web_project import client_of

HOSTILE = "<script>alert(1)</script>"


def twice(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    project.use(folder)
    for number in range(3):
        version = models.register(
            "digits",
            twice,
            metrics={"accuracy": 0.8 + number / 20, "odd": math.nan if number == 1 else 1.0},
            example=[1.0],
            description=HOSTILE,
            tags=["<b>tagged</b>"],
        )
    version.promote("champion", when="accuracy >= 0.5")
    models.get("digits:1").promote("champion")
    models.get("digits:2").write_card(f"# Mine\n\n{HOSTILE} **bold** [x](javascript:alert(1))")
    models.get("digits:2").note(HOSTILE)
    models.register("other", twice)
    return folder


@pytest.fixture
def client(root: Path) -> TestClient:
    project.use(root)
    return client_of(project.current())


def test_models_are_listed_and_found(client: TestClient) -> None:
    answer = client.get("/api/v1/models").json()
    model_of(ModelPage).model_validate(answer)
    assert [(model["name"], model["version"], model["flavour"]) for model in answer["models"]] == [
        ("digits", 3, "python"),
        ("other", 1, "python"),
    ]
    found = client.get("/api/v1/models", params={"words": "TAGGED"}).json()
    assert [model["name"] for model in found["models"]] == ["digits"]
    page = client.get("/models").text
    assert '<a href="/models" aria-current="page">Models</a>' in page
    assert HOSTILE not in page
    assert "&lt;b&gt;tagged&lt;/b&gt;" in page
    assert "No model has this in its words" in client.get("/models", params={"words": "nothing"}).text


def test_one_model_has_versions_aliases_and_figures(client: TestClient) -> None:
    answer = client.get("/api/v1/models/digits").json()
    model_of(ModelDetails).model_validate(answer)
    assert [version["version"] for version in answer["versions"]] == [3, 2, 1]
    assert answer["versions"][1]["metrics"]["odd"] is None
    assert answer["aliases"] == {"champion": 1}
    assert [(move["version"], move["before"], move["gate"]) for move in answer["moves"]] == [
        (1, 3, ""),
        (3, None, "accuracy >= 0.5"),
    ]
    part = client.get("/api/v1/models/digits", params={"offset": 1, "limit": 1}).json()
    assert ([version["version"] for version in part["versions"]], part["total"]) == ([2], 3)
    page = client.get("/models/digits").text
    assert page.count('<svg class="chart"') == 2
    assert "accuracy of versions 1 to 3: from 0.8 to 0.9, the newest 0.9" in page
    assert "/lineage/model/digits" in page
    assert HOSTILE not in page


def test_one_version_has_its_card_shown_safely(client: TestClient) -> None:
    answer = client.get("/api/v1/models/digits/2").json()
    model_of(VersionDetails).model_validate(answer)
    assert answer["is_card_edited"]
    assert [field["name"] for field in answer["inputs"]] == ["input"]
    assert {file["path"].partition("/")[0] for file in answer["files"]} >= {"model"}
    page = client.get("/models/digits/2").text
    assert "<strong>bold</strong>" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert HOSTILE not in page
    assert 'href="javascript' not in page
    generated = client.get("/models/digits/3").text
    assert "<h3>digits:3</h3>" in generated
    assert HOSTILE not in generated


@pytest.mark.parametrize("path", ["digit", "digits/9", "other/2", "<b>"])
def test_what_is_not_there_is_said(client: TestClient, path: str) -> None:
    assert client.get(f"/api/v1/models/{path}").status_code == 404
    assert client.get(f"/models/{path}").status_code == 404


def test_a_removed_version_is_still_known(client: TestClient) -> None:
    models.register("short", twice)
    models.register("short", twice)
    models.remove("short:1")
    assert client.get("/api/v1/models/short/1").json()["model"]["is_removed"]
    assert "removed" in client.get("/models/short").text


def test_thousands_of_versions_are_thinned_and_no_peak_is_lost() -> None:
    points = [(version, 1.0 if version == 5005 else 0.5) for version in range(1, 10_001)]
    (chart,) = charts({"accuracy": points, "alone": [(1, 2.0)]}, [7000])
    assert chart.metric == "accuracy"
    (line,) = re.findall(r'points="([^"]*)"', chart.svg)
    assert len(line.split()) <= 302
    assert line.count(",12.0") == 1, "the peak is at the top"
    assert chart.svg.count("<circle") == 1, "only the version with an alias has one"


def test_names_of_metrics_are_text() -> None:
    (chart,) = charts({HOSTILE: [(1, 1.0), (2, 2.0)]})
    assert "<script" not in chart.svg
