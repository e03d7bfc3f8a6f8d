"""Networks and publications on their pages in a real browser: they fit, axe finds nothing, and the daemon is paused."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from cargobike import data, sharing
from cargobike import project as project_door
from cargobike.sharing.daemon.serving import Daemon
from cargobike.sharing.front import open_catalogue
from cargobike.sharing.network.network import make_network
from cargobike.sharing.records import sign
from support import programs
from support.dashboard_site import HOSTILE, started_server
from support.page_checks import check_pages
from support.publications import identity_of, opinion, signed_manifest

pytestmark = pytest.mark.timeout(300)
ALICE, BOB = identity_of("alice"), identity_of("bob")


def make_network_of_publications(root: Path) -> None:
    """Fill a project with publications of its own and of others."""
    project_door.use(root)
    data.write({"pt": [0.5, 1.5], "label": [1, 0]}, "collisions")
    sharing.publish(
        "collisions", "table:collisions", network="lab", description="Of two beams", license="CC0", yes=True
    )
    with open_catalogue("lab") as catalogue:
        catalogue.add(signed_manifest(ALICE, 1, description=HOSTILE, tags=("physics", HOSTILE[:50])))
        catalogue.add(signed_manifest(ALICE, 2, version=2, description="Collisions with and without a boson"))
        catalogue.add(sign(opinion(BOB, ALICE, 1, text=f"Clean. {HOSTILE}", rating=5), BOB))
        catalogue.trust(ALICE.publisher, "alice")


def test_publications_are_looked_at_and_the_daemon_is_paused(tmp_path: Path) -> None:
    chromium = programs.require("chromium")
    try:
        make_network_of_publications(tmp_path)
        network = make_network("lab", secret="the secret of the lab")
        with (
            Daemon(project_door.current(), network) as daemon,
            started_server(tmp_path) as address,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            paths = ("sharing", "sharing/lab", "sharing/lab/publications/higgs", "sharing/lab/publications/collisions")
            check_pages(browser, address, paths)
            _pause(browser, address)
            assert daemon.status().is_paused
            browser.close()
    finally:
        project_door.use(None)


def _pause(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{address}/sharing")
    page.get_by_role("link", name="lab", exact=True).click()
    page.get_by_label("Find").fill("boson")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="higgs:2").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("higgs:2")
    expect(page.get_by_text("5 of 5")).to_be_visible()
    page.goto(f"{address}/sharing/lab")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert page.title() != "owned"
    page.close()
