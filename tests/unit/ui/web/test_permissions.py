"""What each role may do, and what a caller is told whose role is too weak."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import APIRouter
from starlette.testclient import TestClient

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.access import Access
from cargobike.ui.web.app import create_app
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Section
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.tokens import TokenBook
from support.web_project import ADDRESS, ASKING, RUNNING, client_of, sample_project

STOP = f"/api/v1/experiments/{RUNNING}/stop"
OWN = "the-token-that-the-server-printed"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectFolder:
    return sample_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def book(project: ProjectFolder) -> Iterator[TokenBook]:
    book = TokenBook(project)
    yield book
    for token in book.all():
        book.revoke(token.name)


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_each_role_includes_those_before_it() -> None:
    assert [[role.includes(other) for other in Role] for role in Role] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert Role.ADMINISTER.at_most(Role.READ) is Role.READ
    assert Role.READ.at_most(Role.RUN) is Role.READ


def test_a_token_lets_its_bearer_do_what_its_role_says(project: ProjectFolder, book: TokenBook) -> None:
    tokens = {role: book.create(f"for-{role}", role) for role in Role}
    with client_of(project, Access(token=OWN, book=book)) as client:
        assert client.get("/api/v1/experiments").status_code == 401
        for role, token in tokens.items():
            info = client.get("/api/v1/server", headers=_bearer(token)).json()
            assert (info["role"], info["may_stop"]) == (role, role is not Role.READ)
        refused = client.post(STOP, headers={**ASKING, **_bearer(tokens[Role.READ])})
        assert refused.status_code == 403
        assert "needs the role 'run'; your token has the role 'read'" in refused.json()["detail"]
        assert "cargobike tokens create NAME --role run" in refused.json()["detail"]
        assert client.post(STOP, headers={**ASKING, **_bearer(tokens[Role.RUN])}).status_code == 202
        assert client.get("/api/v1/server", headers=_bearer(OWN)).json()["role"] == "administer"


def test_a_read_only_server_makes_every_role_weaker(project: ProjectFolder, book: TokenBook) -> None:
    strong = book.create("strong", Role.ADMINISTER)
    with client_of(project, Access(token=OWN, most=Role.READ, book=book)) as client:
        for token in (strong, OWN):
            refused = client.post(STOP, headers={**ASKING, **_bearer(token)})
            assert refused.status_code == 403
            assert "--read-only" in refused.json()["detail"]


def test_a_browser_that_shows_a_token_keeps_its_role(project: ProjectFolder, book: TokenBook) -> None:
    token = book.create("ada", Role.READ)
    with client_of(project, Access(book=book)) as client:
        assert client.get("/api/v1/server").json()["role"] == "administer"  # on this machine, without a token
        assert client.post("/login", json={"token": token}, headers=ASKING).json()["role"] == "read"
        assert client.get("/api/v1/server").json()["role"] == "read"
        page = client.get(f"/experiments/{RUNNING}").text
        assert "data-stop" not in page
        assert "read only" in page
        assert client.get("/api/v1/server", headers=_bearer("wrong")).status_code == 401


def test_a_token_that_is_revoked_elsewhere_is_refused_at_once(project: ProjectFolder, book: TokenBook) -> None:
    token = book.create("lost", Role.RUN)
    with client_of(project, Access(token=OWN, book=book)) as client:
        assert client.get("/api/v1/server", headers=_bearer(token)).status_code == 200
        TokenBook(project).revoke("lost")
        assert client.get("/api/v1/server", headers=_bearer(token)).status_code == 401


def test_the_book_holds_no_token_and_is_for_its_owner_alone(project: ProjectFolder, book: TokenBook) -> None:
    token = book.create("mine", Role.READ)
    file = project.root / "access" / "tokens.json"
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(InvalidInputError, match="There is a token called 'mine' already"):
        book.create("mine", Role.RUN)
    with pytest.raises(InvalidInputError, match="cannot name a token"):
        book.create("../x", Role.RUN)
    with pytest.raises(NotFoundError, match="no token called 'mime'"):
        book.revoke("mime")


def test_a_book_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    (tmp_path / "access").mkdir()
    (tmp_path / "access" / "tokens.json").write_text("[{]")
    with pytest.raises(StoreError, match="Delete the file to revoke all"):
        TokenBook(project).role_of("x")


def test_what_changes_something_and_says_nothing_needs_the_strongest_role(project: ProjectFolder) -> None:
    api = APIRouter()

    @api.post("/garden/water")
    def water() -> str:
        return "wet"

    section = Section(name="garden", api=api, package="cargobike.data.pages")
    token = TokenBook(project).create("gardener", Role.RUN)
    book = TokenBook(project)
    app = create_app(ServerState.of(project, Access(book=book)), [section])
    with TestClient(app, base_url=ADDRESS) as client:
        refused = client.post("/api/v1/garden/water", headers={**ASKING, **_bearer(token)})
        assert (refused.status_code, "'administer'" in refused.json()["detail"]) == (403, True)
        assert client.post("/api/v1/garden/water", headers=ASKING).json() == "wet"
    book.revoke("gardener")
    assert app.openapi()["paths"]["/api/v1/garden/water"]["post"]["x-cargobike-role"] == "administer"


def test_the_document_of_the_api_says_which_role_each_change_needs(project: ProjectFolder) -> None:
    paths = create_app(ServerState.of(project)).openapi()["paths"]
    changing = {path: way["post"].get("x-cargobike-role") for path, way in paths.items() if "post" in way}
    assert changing["/api/v1/experiments/{experiment_id}/stop"] == "run"
    assert changing["/api/v1/sharing/{network}/limits"] == "administer"
    assert None not in changing.values()
