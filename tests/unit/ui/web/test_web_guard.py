"""Who may ask the server, and what a stranger gets: nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.access import Access, access_for, host_of, is_loopback
from cargobike.ui.web.guard import LONGEST_BODY
from support.sample_records import HOSTILE
from support.web_project import ADDRESS, ASKING, HOSTILE_ID, LIVELY, client_of, sample_project

STOP = f"/api/v1/experiments/{LIVELY}/stop"
TOKEN = "a-token-that-nobody-can-guess"
PAGES = ("/", f"/experiments/{LIVELY}", f"/experiments/{LIVELY}/trials/3", "/compare", "/login")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectFolder:
    return sample_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def client(project: ProjectFolder) -> Iterator[TestClient]:
    with client_of(project) as found:
        yield found


@pytest.fixture
def locked(project: ProjectFolder) -> Iterator[TestClient]:
    with client_of(project, Access(token=TOKEN)) as found:
        yield found


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost:8520", "localhost"),
        ("LOCALHOST", "localhost"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("", None),
        ("a:b", None),
        ("[::1", None),
        ("[::1]x", None),
        ("localhost:80:80", None),
    ],
)
def test_a_host_header_is_read_strictly(header: str, host: str | None) -> None:
    assert host_of(header) == host


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8520", "10.0.0.7", ""]
)
def test_a_name_that_was_made_to_point_here_is_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/v1/experiments", "/static/shell.js"):
        answer = client.get(path, headers={"host": host})
        assert answer.status_code == 421
        assert LIVELY not in answer.text


def test_elsewhere_than_on_loopback_there_is_always_a_token() -> None:
    assert access_for("127.0.0.1").token is None
    assert access_for("localhost").token is None
    assert access_for("LocalHost").token is None
    assert access_for("localhost", token=TOKEN).token == TOKEN
    open_one = access_for("0.0.0.0", names=["Tower.Example"])
    assert open_one.token is not None
    assert len(open_one.token) >= 40
    assert open_one.token != access_for("0.0.0.0").token
    assert open_one.answers_to("192.168.1.5:8520")
    assert open_one.answers_to("tower.example")
    assert not open_one.answers_to("evil.example")
    assert not is_loopback("0.0.0.0")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("localhost.example")


def test_without_the_token_nothing_is_told(locked: TestClient) -> None:
    for path in (
        "/api/v1/experiments",
        "/api/v1/openapi.json",
        f"/api/v1/experiments/{LIVELY}/files",
        "/api/v1/events",
    ):
        answer = locked.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert LIVELY not in answer.text
    page = locked.get("/", follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    assert locked.post(STOP, headers=ASKING).status_code == 401
    for wrong in ("Bearer nope", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer ", "Bearer ünïcode"):
        answer = locked.get("/api/v1/experiments", headers={b"authorization": wrong.encode()})
        assert answer.status_code == 401
    assert locked.get("/api/v1/experiments", headers={"cookie": f"cargobike_8520={TOKEN}"}).status_code == 401
    assert locked.get("/api/v1/experiments", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_browser_shows_the_token_once_and_keeps_a_cookie(locked: TestClient) -> None:
    assert locked.post("/login", json={"token": "wrong"}, headers=ASKING).status_code == 401
    answer = locked.post("/login", json={"token": TOKEN}, headers=ASKING)
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert locked.get("/api/v1/experiments").status_code == 200
    assert locked.get("/").status_code == 200
    locked.cookies.clear()
    assert locked.get("/api/v1/experiments").status_code == 401


def test_the_token_is_never_logged(locked: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    locked.post("/login", json={"token": TOKEN}, headers=ASKING)
    locked.get("/api/v1/experiments", headers={"authorization": f"Bearer {TOKEN}"})
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 403),
        ({"content-type": "text/plain", "x-cargobike": "1"}, 415),
        ({"content-type": "application/x-www-form-urlencoded", "x-cargobike": "1"}, 415),
        ({"x-cargobike": "1"}, 415),
        ({**ASKING, "origin": "http://evil.example"}, 403),
        ({**ASKING, "origin": "null"}, 403),
        ({**ASKING, "origin": "http://127.0.0.1:9999"}, 403),
        ({**ASKING, "sec-fetch-site": "cross-site"}, 403),
        ({**ASKING, "sec-fetch-site": "same-site"}, 403),
        ({**ASKING, "origin": ADDRESS, "sec-fetch-site": "same-origin"}, 202),
    ],
)
def test_a_page_of_another_origin_changes_nothing(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.post(STOP, headers=headers).status_code == status


def test_input_that_is_too_long_is_refused(client: TestClient) -> None:
    assert client.get("/api/v1/experiments", params={"q": "x" * 50_000}).status_code == 414
    assert client.get("/api/v1/experiments", params={"q": "x" * 2001}).status_code == 422
    assert client.post(STOP, headers=ASKING, content=b"x" * (LONGEST_BODY + 1)).status_code == 413

    def pieces() -> Iterator[bytes]:  # no length is told: it is counted
        for _ in range(LONGEST_BODY // 1000 + 2):
            yield b"x" * 1000

    assert client.post("/login", headers=ASKING, content=pieces()).status_code == 413


@pytest.mark.parametrize("path", [*PAGES, "/api/v1/experiments", "/nowhere", "/static/shell.js"])
def test_every_answer_carries_the_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe-eval" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert path.startswith("/static") or headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/experiments/{HOSTILE_ID}",
        f"/experiments/{HOSTILE_ID}?fragment=true",
        f"/experiments/{HOSTILE_ID}/trials/4",
        f"/experiments/{HOSTILE_ID}/trials/0",
    ],
)
def test_what_strangers_wrote_stays_text(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    assert HOSTILE not in page.text
    for tag in ("<img", "<script>", "onerror=alert(1)>"):
        assert tag not in page.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.text


def test_a_wrong_address_is_told_as_text(client: TestClient) -> None:
    page = client.get("/experiments/<script>alert(1)</script>")
    assert page.status_code == 404
    assert "<script>alert" not in page.text
    assert client.get("/static/../guard.py").status_code == 404
    assert client.get("/static/%2e%2e%2fguard.py").status_code == 404
    assert client.get("/experiments/last", follow_redirects=False).headers["location"].startswith("/experiments/2027")


def test_a_project_without_experiments_says_what_to_do(tmp_path: Path) -> None:
    with client_of(ProjectFolder(tmp_path)) as client:
        assert "No experiments yet" in client.get("/experiments").text
        assert client.get("/api/v1/experiments").json()["total"] == 0
