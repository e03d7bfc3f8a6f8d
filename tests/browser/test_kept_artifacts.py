"""What a trial kept, on its page in a real browser: pictures, tables and texts, and nothing that runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from cargobike import experiment, trial
from cargobike import project as project_door
from support import programs
from support.dashboard_site import HOSTILE, started_server

pytestmark = pytest.mark.timeout(300)


def keep_everything(x: int) -> int:
    trial.artifact(np.zeros((8, 8, 3)), "plots/black.png")
    trial.artifact([{"word": "bike, blue", "count": 3}, {"word": HOSTILE, "count": 4}], "words")
    trial.artifact(text=HOSTILE, name="notes.txt")
    Path("fake.png").write_text(HOSTILE)
    Path("page.html").write_text(HOSTILE)
    Path("drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    return x


def test_pictures_tables_and_texts_are_shown(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    project_door.use(tmp_path)
    try:
        result = experiment.launch(keep_everything, params={"x": 1}, quiet=True)
    finally:
        project_door.use(None)
    with started_server(tmp_path) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog came up: {dialog.message}"))
        page.goto(f"{address}/experiments/{result.id}/trials/0")
        shown = page.locator("[data-artifacts]")
        expect(shown.locator(".card")).to_have_count(4, timeout=60_000)
        image = shown.locator("img")
        expect(image).to_have_count(1, timeout=60_000)
        expect(image).to_have_js_property("naturalWidth", 8)
        expect(shown.locator("td")).to_have_text(["bike, blue", "3", HOSTILE, "4"])
        expect(shown.locator("pre")).to_have_text(HOSTILE)
        expect(shown).to_contain_text("not a picture that can be shown")
        assert "owned" not in page.title()
        browser.close()
