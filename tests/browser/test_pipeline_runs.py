"""A run of a pipeline in a real browser: watched live, cancelled, resumed, looked into; and read by a screen reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from cargobike import pipelines
from cargobike import project as project_door
from cargobike.pipelines.running import start
from support import programs
from support.dashboard_site import HOSTILE, started_server
from support.page_checks import check_pages

pytestmark = pytest.mark.timeout(300)

PIPELINE = """
import pathlib, time
from cargobike import models, pipelines

HERE = pathlib.Path(__file__).parent


@pipelines.step
def first():
    print("the first step speaks")
    return 1


@pipelines.step
def waits(given, words):
    until = time.monotonic() + 100
    while not (HERE / "go").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return given + 1


def double(rows):
    return [2 * row for row in rows]


def retrain(words):
    one = first()
    models.register("double", double)
    return waits(one, words).result()
"""


def test_a_run_is_watched_cancelled_and_resumed(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    place = tmp_path / "retrain.py"
    place.write_text(PIPELINE)
    project_door.use(tmp_path / "project")
    try:
        with pytest.raises(ValueError, match="no"):
            pipelines.run(refused)
        run = start(f"{place}:retrain", params={"words": HOSTILE}, run_id="nightly-1", cause={"schedule": HOSTILE})
        with started_server(tmp_path / "project") as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            _change(browser, address, tmp_path)
            check_pages(browser, address, ("pipelines", "pipelines/runs/nightly-1", "pipelines/runs/nightly-1/steps/3"))
            browser.close()
        run.process.wait(60)
    finally:
        project_door.use(None)


def refused() -> None:
    """A pipeline that does not get far."""
    raise ValueError("no")


def _change(browser: Browser, address: str, folder: Path) -> None:
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
    page.goto(f"{address}/pipelines")
    page.get_by_role("link", name="nightly-1").click()
    state = page.locator("[data-run-state] .badge").first
    expect(page.locator("svg.graph a.running")).to_have_attribute("aria-label", "step 3 waits, running, running")
    page.get_by_role("button", name="Cancel").click()
    expect(state).to_have_text("running")
    page.get_by_role("button", name="Cancel").click()
    expect(state).to_have_text("cancelled", timeout=30_000)
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    (folder / "go").touch()
    page.get_by_role("button", name="Resume").click()
    expect(state).to_have_text("completed", timeout=60_000)
    assert [text.partition("?")[0] for text in asked] == ["Cancel this run"] * 2 + ["Resume this run"]
    page.get_by_role("link", name="first", exact=True).click()
    expect(page.get_by_label("What it printed", exact=True)).to_have_text("the first step speaks")
    page.go_back()
    page.get_by_role("link", name="model double:1", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("double:1")
    assert "owned" not in page.title()
    page.close()


def _page(browser: Browser) -> Page:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    return page
