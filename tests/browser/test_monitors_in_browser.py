"""Monitors on their pages in a real browser: found, looked into, an alarm acknowledged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from cargobike import monitoring
from cargobike import project as project_door
from support import programs
from support.dashboard_site import started_server
from support.page_checks import check_pages
from support.watched_monitors import HOSTILE_NAME, make_monitor

pytestmark = pytest.mark.timeout(300)


def test_an_alarm_is_found_and_acknowledged(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    project_door.use(tmp_path)
    try:
        make_monitor(project_door.current(), extra=(HOSTILE_NAME,))
        with started_server(tmp_path) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            check_pages(browser, address, ("monitors", "monitors/digits"))
            _acknowledge(browser, address)
            browser.close()
    finally:
        project_door.use(None)


def _acknowledge(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    asked: list[str] = []
    answers = iter([False, True])

    def decide(dialog: Any) -> None:
        asked.append(dialog.message)
        if next(answers):
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", decide)
    page.goto(f"{address}/monitors")
    page.get_by_role("link", name="digits", exact=True).click()
    expect(page.get_by_role("img", name="age: unusual in 4 of 10 windows")).to_be_visible()
    page.get_by_label("Note").fill("a new camera")
    page.get_by_role("button", name="Acknowledge").click()
    assert len(monitoring.monitor("digits").alarms(only_open=True)) == 1, "a no changes nothing"
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".alarm")).to_contain_text("a new camera")
    assert [text.partition("?")[0] for text in asked] == ["Acknowledge alarm-1", "Acknowledge alarm-1"]
    assert monitoring.monitor("digits").alarms(only_open=True) == []
    page.close()
