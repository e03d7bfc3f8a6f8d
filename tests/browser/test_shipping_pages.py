"""Models and deployments on their pages in a real browser: found, looked into, rolled and rolled back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from cargobike import models, serving
from cargobike import project as project_door
from support import programs
from support.dashboard_site import HOSTILE, started_server
from support.page_checks import check_pages

pytestmark = pytest.mark.timeout(300)


def twice(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def test_models_are_found_and_a_deployment_is_rolled(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    project_door.use(tmp_path)
    try:
        for number in range(3):
            metrics = {"accuracy": 0.8 + number / 20, HOSTILE[:40]: float(number)}
            models.register("digits", twice, metrics=metrics, example=[1.0], description=HOSTILE)
        models.get("digits:3").write_card(f"# Mine\n\n{HOSTILE} **bold**")
        models.get("digits:2").promote("champion")
        with serving.deploy("digits", "digits@champion") as deployment:
            assert deployment.predict([1.0]) == [2.0]
            with started_server(tmp_path) as address, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
                _look_at_models(browser, address)
                _roll(browser, address, deployment)
                check_pages(
                    browser,
                    address,
                    ("models", "models/digits", "models/digits/3", "deployments", "deployments/digits"),
                )
                browser.close()
    finally:
        project_door.use(None)


def _look_at_models(browser: Browser, address: str) -> None:
    page = _page(browser)
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog came up: {dialog.message}"))
    page.goto(f"{address}/models")
    page.get_by_label("Find").fill("digi")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="digits", exact=True).click()
    expect(page.get_by_role("img", name="accuracy of versions 1 to 3")).to_be_visible()
    page.get_by_role("region", name="Versions").get_by_role("link", name="3", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("digits:3")
    expect(page.locator(".markdown strong")).to_have_text("bold")
    assert "owned" not in page.title()
    page.close()


def _roll(browser: Browser, address: str, deployment: serving.Deployment) -> None:
    page = _page(browser)
    asked: list[str] = []
    answers = iter([False, True, True])

    def decide(dialog: Any) -> None:
        asked.append(dialog.message)
        if next(answers):
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", decide)
    page.goto(f"{address}/deployments")
    page.get_by_role("link", name="digits", exact=True).click()
    expect(page.locator("[data-state]")).to_have_text("serving")
    page.get_by_label("Bring in").fill("digits:3")
    page.get_by_role("button", name="Roll", exact=True).click()
    assert deployment.status().version == 2, "a no changes nothing"
    page.get_by_role("button", name="Roll", exact=True).click()
    expect(page.locator("[data-version]")).to_have_text("3")
    assert deployment.status().version == 3
    page.get_by_role("button", name="Roll back").click()
    expect(page.locator("[data-version]")).to_have_text("2")
    assert [text.partition("?")[0] for text in asked] == ["Roll to digits:3", "Roll to digits:3", "Roll back"]
    page.close()


def _page(browser: Browser) -> Page:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    return page
