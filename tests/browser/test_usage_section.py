"""What a trial used, on its page in a real browser: words and a figure, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.driving.output_files import OutputFiles
from cargobike.experiments.driving.usage_files import UsageFiles
from cargobike.experiments.usage import DataPace
from cargobike.testing.stores import JournalBuilder
from cargobike.workers.wire.messages import Used
from support import programs
from support.dashboard_site import started_server

pytestmark = pytest.mark.timeout(300)
ID = "20270101-000000-aaaa"


def test_use_is_said_and_drawn_where_it_was_measured(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    journal = JournalBuilder(ProjectFolder(tmp_path), ID)
    for value in (0.5, 0.7):
        journal.complete(value, lr=value)
    journal.end()
    files = UsageFiles(journal.folder, OutputFiles())
    for second in range(1, 6):
        files.keep(Used(0, 1, float(second), 1.5, second * 100_000_000), 0, DataPace(1000.0 * second, 0.25))
    with started_server(tmp_path) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{address}/experiments/{ID}/trials/0")
        section = page.locator("[data-usage-section]")
        expect(section).to_be_visible(timeout=60_000)
        expect(section.locator("[data-usage-summary]")).to_have_text(
            "1.5 CPUs, 500 MB, 3,000 rows/s, 25% of the time waiting"
        )
        section.locator("[data-usage]").scroll_into_view_if_needed()
        lines = section.locator(".scatterlayer .trace")
        expect(lines).to_have_count(4, timeout=60_000)  # processors, memory, rows and waiting; there is no GPU
        page.goto(f"{address}/experiments/{ID}/trials/1")
        expect(page.locator("[data-snapshot]")).to_be_attached()
        page.wait_for_load_state("networkidle")
        expect(page.locator("[data-usage-section]")).to_be_hidden()
        browser.close()
