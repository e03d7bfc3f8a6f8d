"""The shell: it shows what sections give it, and knows no product."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.testclient import TestClient

from cargobike.core.layout import ProjectFolder
from cargobike.ui.answers import Answer
from cargobike.ui.web.answering import sends
from cargobike.ui.web.app import create_app
from cargobike.ui.web.section import Link, Section, registered_sections
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.static import static_files
from cargobike.ui.web.templates import Pages


class Load(Answer):
    """What a bike carries."""

    crates: int


def bikes(closed: list[str], *, with_start_page: bool = False) -> Section:
    """Return a section of a product that only this test has."""
    api, pages = APIRouter(), APIRouter()

    @api.get("/bikes")
    @sends
    def load(request: Request) -> Load:
        return Load(crates=request.app.state.sections["bikes"])

    if with_start_page:

        @pages.get("/")
        def start(templates: Pages) -> Response:
            return templates.page("error.html", here="bikes", status=404, why="")

    return Section(
        name="bikes",
        holds="bikes and their crates",
        links=(Link("Bikes", "/bikes", "bikes"),),
        pages=pages,
        api=api,
        package="cargobike.data.pages",
        state=3,
        close=lambda: closed.append("bikes"),
    )


@contextmanager
def shown(root: Path, *sections: Section) -> Iterator[TestClient]:
    app = create_app(ServerState.of(ProjectFolder(root / "wagon")), sections)
    with TestClient(app, base_url="http://127.0.0.1:8520") as client:
        yield client


def test_a_section_has_its_routes_its_state_and_its_place_in_the_navigation(tmp_path: Path) -> None:
    closed: list[str] = []
    with shown(tmp_path, bikes(closed)) as client:
        assert client.get("/api/v1/bikes").json() == {"crates": 3}
        document = client.get("/api/v1/openapi.json").json()
        assert document["info"]["description"] == "Bikes and their crates of one project."
        assert document["components"]["schemas"]["Load"]["required"] == ["crates"]
        page = client.get("/").text
        assert '<a href="/bikes" >Bikes</a>' in page
        assert "wagon" in page
        assert "Experiments" not in page
        assert not closed
    assert closed == ["bikes"]


def test_a_section_may_have_the_start_page(tmp_path: Path) -> None:
    with shown(tmp_path, bikes([], with_start_page=True)) as client:
        assert '<a href="/bikes" aria-current="page">Bikes</a>' in client.get("/").text


def test_a_server_of_nothing_says_so(tmp_path: Path) -> None:
    with shown(tmp_path) as client:
        assert "Nothing is shown here yet" in client.get("/").text
        assert client.get("/api/v1/server").json()["project"] == str(tmp_path / "wagon")
        missing = client.get("/bikes")
        assert missing.status_code == 404
        assert "Nothing here" in missing.text


def test_every_product_that_registers_pages_is_shown(tmp_path: Path) -> None:
    names = [section.name for section in registered_sections(ServerState.of(ProjectFolder(tmp_path)))]
    assert names[:2] == ["experiments", "data"]


def test_two_static_files_of_one_name_are_refused() -> None:
    assert static_files(["cargobike.ui.pages"])["shell.js"] == "cargobike.ui.pages"
    with pytest.raises(ValueError, match="Two static files are called"):
        static_files(["cargobike.ui.pages", "cargobike.ui.pages"])


def test_the_shell_loads_no_product() -> None:
    code = (
        "import sys, cargobike.ui.web.app, cargobike.ui.web.serving\n"
        "print(sorted(name for name in sys.modules if name.startswith(('cargobike.experiments', 'cargobike.data'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
