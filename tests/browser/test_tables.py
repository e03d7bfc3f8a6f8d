"""Tables on their pages in a real browser: versions, columns and rows, and nothing that runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from cargobike import data
from cargobike import project as project_door
from support import programs
from support.dashboard_site import HOSTILE, started_server

pytestmark = pytest.mark.timeout(300)


def test_a_table_is_found_and_looked_into(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    project_door.use(tmp_path)
    try:
        for rows in (30, 60):
            images = np.zeros((rows, 28, 28), np.uint8)
            data.write({"name": [HOSTILE] * rows, "image": images, "score": np.arange(rows) / 7}, "digits")
    finally:
        project_door.use(None)
    with started_server(tmp_path) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            page = browser.new_page(color_scheme=scheme)
            page.set_default_timeout(60_000)
            page.on("dialog", lambda dialog: pytest.fail(f"a dialog came up: {dialog.message}"))
            page.goto(f"{address}/data")
            page.get_by_role("link", name="digits:2").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("digits:2")
            rows_shown = page.get_by_role("region", name="First rows").locator("tbody tr")
            expect(rows_shown).to_have_count(20)
            expect(rows_shown.first.locator("td")).to_have_text([HOSTILE[:59] + "…", "tensor uint8[28, 28]", "0"])
            page.get_by_role("region", name="Versions").get_by_role("link", name="1").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("digits:1")
            assert "owned" not in page.title()
            page.close()
        browser.close()
