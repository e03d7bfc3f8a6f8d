"""From a group over its lineage to an experiment and back in a real browser, in both colours, also on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect, sync_playwright

from cargobike import experiment, features
from cargobike import project as project_door
from support import programs
from support.dashboard_site import started_server

PAGES = (
    "/lineage/group/teams",
    "/lineage/table/nothing",
    "/features",
    "/feature-views",
    "/feature-views/team_value",
    "/training-datasets",
    "/training-datasets/season",
)

pytestmark = pytest.mark.timeout(300)


def _train(data: Any) -> float:
    return float(len(data))


def _fill(root: Path) -> None:
    project_door.use(root)
    try:
        teams = features.create_group("teams", key="team_id", event_time="at")
        teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0]})
        view = features.create_view("team_value", features=["budget"], label="value")
        labels = {"team_id": [1, 2], "at": ["2026-02-01"] * 2, "value": [1.0, 2.0]}
        dataset = view.create_training_dataset("season", labels)
        experiment.launch(_train, {}, data=dataset, num_trials=1, workers=0, quiet=True, name="first try")
    finally:
        project_door.use(None)


def _fits(page: Page) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"))


def test_lineage_is_walked_in_both_directions(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    _fill(tmp_path)
    with started_server(tmp_path) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        looks: list[tuple[Literal["light", "dark"], int]] = [("light", 1280), ("dark", 390)]
        for scheme, width in looks:
            page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
            page.set_default_timeout(60_000)
            page.on("pageerror", lambda error: pytest.fail(f"a script failed: {error}"))
            page.goto(f"{address}/features/teams")
            page.get_by_role("link", name="Lineage").click()
            uses = page.get_by_role("region", name="group teams:1 is used by")
            expect(uses.get_by_role("listitem")).to_have_count(4)
            assert _fits(page)
            uses.get_by_role("link", name="first try").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("first try")
            page.get_by_role("link", name="Lineage").click()
            expect(page.locator(".lineage-graph .middle")).to_be_in_viewport(ratio=1)  # on a phone it is far right
            page.get_by_role("region", name="came from").get_by_role("link", name="season:1").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("season:1")
            assert _fits(page)
            page.get_by_role("region", name="Made from").get_by_role("link", name="teams:1").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("teams")
            page.close()
            # Its script comes from a test library, not from the server, whose policy forbids such.
            context = browser.new_context(
                color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
            )
            page = context.new_page()
            for path in PAGES:
                page.goto(f"{address}{path}")
                violations = Axe().run(page).response["violations"]
                assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in violations] == [], path
            context.close()
        browser.close()
