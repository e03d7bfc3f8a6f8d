"""The pages of deployments and the answers behind them, and releases that are asked for there."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from cargobike import models, project, serving
from cargobike.core.errors import DeploymentError
from cargobike.serving.pages.answers import DeploymentDetails, DeploymentPage, LastRequests, Release
from cargobike.serving.pages.releasing import begin
from cargobike.ui.web.access import Access
from cargobike.ui.web.answering import model_of
from cargobike.ui.web.roles import Role
from support.web_project import ASKING, client_of


def twice(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def broken(rows: list[Any]) -> list[Any]:
    if "TESTS_BREAK_MODELS" in os.environ:
        raise ValueError("<script>broken</script>")
    return rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def deployment(root: Path) -> Iterator[serving.Deployment]:
    project.use(root)
    patched = pytest.MonkeyPatch()
    try:
        for function in (twice, twice, broken):
            models.register("digits", function, example=[1.0])
        patched.setenv("TESTS_BREAK_MODELS", "1")
        with serving.deploy("digits", "digits:1", log={"flush_s": 0.1}) as deployed:
            yield deployed
    finally:
        patched.undo()
        project.use(None)


@pytest.fixture
def client(root: Path, deployment: serving.Deployment) -> TestClient:
    project.use(root)
    return client_of(project.current())


def test_deployments_are_listed(client: TestClient) -> None:
    answer = client.get("/api/v1/deployments").json()
    model_of(DeploymentPage).model_validate(answer)
    (line,) = answer["deployments"]
    assert (line["name"], line["state"], line["model"], line["ready"]) == ("digits", "serving", "digits:1", 1)
    page = client.get("/deployments").text
    assert '<a href="/deployments" aria-current="page">Deployments</a>' in page
    assert '<a href="/deployments/digits">digits</a>' in page
    assert client.get("/api/v1/deployments", params={"words": "none"}).json()["total"] == 0


def test_a_version_is_rolled_in_and_back(client: TestClient, deployment: serving.Deployment) -> None:
    assert deployment.predict([1.0, 2.0]) == [2.0, 4.0]
    rolled = client.post("/api/v1/deployments/digits/roll", json={"model": "digits:2"}, headers=ASKING)
    assert rolled.status_code == 202, rolled.text
    model_of(Release).model_validate(rolled.json())
    assert (rolled.json()["state"], rolled.json()["version"]) == ("serving", 2)
    answer = client.get("/api/v1/deployments/digits").json()
    model_of(DeploymentDetails).model_validate(answer)
    assert (answer["deployment"]["version"], answer["previous"], answer["routes"]) == (2, 1, {"2": 1.0})
    assert answer["may_change"]
    page = client.get("/deployments/digits").text
    assert "data-rollback" in page
    assert "version 2 released" in page
    back = client.post("/api/v1/deployments/digits/rollback", headers=ASKING, json={})
    assert (back.status_code, back.json()["version"]) == (202, 1)


def test_a_version_that_cannot_serve_is_refused_with_its_error(
    client: TestClient, deployment: serving.Deployment
) -> None:
    before = deployment.status().version
    refused = client.post("/api/v1/deployments/digits/roll", json={"model": "digits:3"}, headers=ASKING)
    assert refused.status_code == 409
    assert "broken" in refused.json()["detail"]
    assert deployment.status().version == before
    page = client.get("/deployments/digits").text
    assert "<script>broken" not in page
    missing = client.post("/api/v1/deployments/digits/roll", json={"model": "digits:9"}, headers=ASKING)
    assert missing.status_code in {404, 409}


def test_changes_need_our_header_and_a_server_that_allows_them(
    client: TestClient, deployment: serving.Deployment
) -> None:
    for verb in ("roll", "rollback"):
        path = f"/api/v1/deployments/digits/{verb}"
        assert client.post(path, json={"model": "digits:2"}).status_code == 403
        assert client.get(path).status_code in {404, 405}
        reader = client_of(project.current(), Access(most=Role.READ))
        answer = reader.post(path, json={"model": "digits:2"}, headers=ASKING)
        assert (answer.status_code, answer.json()["detail"]) == (
            403,
            "This needs the role 'run', but this server was started with --read-only.",
        )
    assert "data-roll" not in reader.get("/deployments/digits").text


def test_the_last_requests_are_shown_without_their_content(client: TestClient, deployment: serving.Deployment) -> None:
    deployment.predict([123456.0])
    for _ in range(100):
        answer = client.get("/api/v1/deployments/digits/requests").json()
        if answer["requests"]:
            break
        threading.Event().wait(0.1)
    model_of(LastRequests).model_validate(answer)
    metrics = httpx.get(f"{deployment.url}/metrics").text
    assert re.search(r'cargobike_log_requests_total{deployment="digits",outcome="written"} [1-9]', metrics)
    assert 'cargobike_log_requests_total{deployment="digits",outcome="dropped"} 0' in metrics
    assert answer["requests"][0]["status"] == 200
    assert "123456" not in str(answer)
    assert "front" in client.get("/api/v1/deployments/digits/output").json()["text"]


def test_what_is_not_there_is_said(client: TestClient) -> None:
    for path in ("digit", "..%2F..%2Fx", "<b>"):
        assert client.get(f"/api/v1/deployments/{path}").status_code == 404
        assert client.get(f"/deployments/{path}").status_code == 404
    assert client.post("/api/v1/deployments/none/rollback", json={}, headers=ASKING).status_code == 404


def test_a_damaged_journal_does_not_hide_the_others(client: TestClient) -> None:
    folder = Path(project.current().root) / "deployments" / "damaged"
    folder.mkdir()
    (folder / "journal.jsonl").write_text("{no journal\n")
    try:
        states = {one["name"]: one["state"] for one in client.get("/api/v1/deployments").json()["deployments"]}
    finally:
        (folder / "journal.jsonl").unlink()
        folder.rmdir()
    assert states["digits"] == "serving"


def test_what_takes_long_goes_on_and_what_fails_is_raised() -> None:
    go_on = threading.Event()
    assert not begin(lambda: go_on.wait(30), within_s=0.01)
    go_on.set()
    assert begin(lambda: None)

    def fail() -> None:
        raise DeploymentError("no")

    with pytest.raises(DeploymentError, match="no"):
        begin(fail)
