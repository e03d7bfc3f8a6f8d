"""Every page of the dashboard in a real browser, reached by links alone: on a desk and a phone, light and dark."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from starlette.routing import Route

from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.overview import routes as overview
from cargobike.ui.web.section import registered_sections
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.tracing import lineage
from support import programs
from support.dashboard_site import started_server
from support.everything_site import everything
from support.page_checks import check_pages

pytestmark = pytest.mark.timeout(600)

NOT_WALKED = {"/shared/{reference}"}
"""An address that only leads on."""


def page_patterns(project: ProjectFolder) -> dict[str, re.Pattern[str]]:
    """Return the pages that a server has, each with what its address looks like."""
    sections = registered_sections(ServerState.of(project))
    routers = [section.pages for section in sections if section.pages] + [overview.pages, lineage.pages]
    paths = {str(one.path) for router in routers for one in _routes(router) if isinstance(one, Route)}
    assert len(paths) > 20
    return {path: re.compile(re.sub(r"{[^}]+}", "[^/]+", path.replace(":path", ""))) for path in sorted(paths)}


def _routes(holder: object) -> list[object]:
    found: list[object] = []
    for route in getattr(holder, "routes", ()):
        inner = getattr(route, "original_router", None)
        found += _routes(inner) if inner is not None else [route]
    return found


def test_every_page_is_reached_by_links_and_fit_to_be_read(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    with (
        everything(tmp_path) as project,
        started_server(project.root) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        wanted = page_patterns(project)
        reached = _walk(browser, address, wanted)
        assert set(wanted) - set(reached) == NOT_WALKED
        check_pages(browser, address, tuple(path.lstrip("/") for path in reached.values()))
        browser.close()


def _walk(browser: Browser, address: str, wanted: dict[str, re.Pattern[str]]) -> dict[str, str]:
    """Follow links from the start page; return one address for each page that was reached."""
    page = browser.new_page()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    reached: dict[str, str] = {}
    ahead = deque(["/", "/search?q=a", "/compare"])
    while ahead:
        path = ahead.popleft()
        pattern = next((name for name, form in wanted.items() if form.fullmatch(urlsplit(path).path)), None)
        if pattern is None or pattern in reached or pattern in NOT_WALKED:
            continue
        page.goto(address + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert not said, f"{path}: {said}"
        assert path == "/" or page.get_by_role("navigation", name="Where this is").count() == 1, f"{path} has no crumbs"
        reached[pattern] = path
        links = page.eval_on_selector_all("a[href]", "all => all.map(one => one.getAttribute('href'))")
        for link in links:
            target = urljoin(address + path, link)
            if target.startswith(address):
                ahead.append(target.removeprefix(address).partition("#")[0])
    page.close()
    return reached
