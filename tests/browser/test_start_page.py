"""The start page, search with the keyboard, the graph of a lineage, and what a role may not do, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from cargobike import features, models
from cargobike import project as project_door
from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.roles import Role
from cargobike.ui.web.tokens import TokenBook
from support import programs
from support.dashboard_site import started_server
from support.page_checks import check_pages
from support.web_project import RUNNING, sample_project

pytestmark = pytest.mark.timeout(300)


def _fill(root: Path) -> None:
    sample_project(root)
    project_door.use(root)
    try:
        teams = features.create_group("teams", key="team_id", event_time="at", description="Budgets", tags=["money"])
        teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0]})
        view = features.create_view("team_value", features=["budget"], label="value")
        labels = {"team_id": [1, 2], "at": ["2026-02-01"] * 2, "value": [1.0, 2.0]}
        view.create_training_dataset("season", labels)
        models.register("digits", _twice, metrics={"accuracy": 0.9}, example=[1.0], tags=["vision"])
    finally:
        project_door.use(None)


def _twice(rows: list[float]) -> list[float]:
    return [2 * row for row in rows]


def test_what_goes_on_is_seen_found_and_walked(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    _fill(tmp_path)
    with started_server(tmp_path) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = _page(browser)
        page.goto(address)
        models_card = page.get_by_role("region", name="Newest models")
        expect(models_card.get_by_role("link", name="digits:1")).to_be_visible()
        expect(page.get_by_role("region", name="Deployments")).to_contain_text("cargobike serve")
        _search(page)
        _walk(page, address)
        check_pages(browser, address, ("", "search?q=teams", "lineage/group/teams", "experiments", "search?q=zzz"))
        page.close()
        browser.close()


def _search(page: Page) -> None:
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Search everything")
    expect(field).to_be_focused()
    field.fill("budget")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("in column")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(field).not_to_be_visible()
    page.keyboard.press("Control+k")
    field.fill("vision")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("digits")


def _walk(page: Page, address: str) -> None:
    page.goto(f"{address}/features/teams")
    page.get_by_role("link", name="Lineage").click()
    graph = page.get_by_role("group", name="Lineage of group teams:1")
    graph.get_by_role("link", name="dataset season:1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Lineage of season:1")
    expect(page.get_by_role("region", name="What is in it")).to_contain_text("team_value:1")


def test_a_reader_sees_no_buttons_and_why(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    sample_project(tmp_path)
    token = TokenBook(ProjectFolder(tmp_path)).create("reader", Role.READ)
    with started_server(tmp_path, "--token") as entry, sync_playwright() as playwright:
        address = entry.partition("/login")[0]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = _page(browser)
        page.goto(f"{address}/login#{token}")
        expect(page.get_by_role("region", name="Experiments")).to_be_visible()
        page.goto(f"{address}/experiments/{RUNNING}")
        expect(page.get_by_text("read only")).to_be_visible()
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        browser.close()


def _page(browser: Browser) -> Page:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: pytest.fail(f"a script failed: {error}"))
    page.on("console", lambda said: pytest.fail(said.text) if said.type == "error" else None)
    return page
