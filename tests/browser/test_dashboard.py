"""The dashboard in a real browser: what people see, click, type and save."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from support.dashboard_site import BIG, BIG_TRIALS, CHROMIUM, HOSTILE, Site, make_project, started_server

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
    # Drawing without a GPU takes a browser seconds, and minutes on a machine that is busy.
    pytest.mark.timeout(300),
]
expect.set_options(timeout=60_000)

LAUNCH = """
import sys, time
from cargobike import Searchspace, experiment, trial

def train(lr, act):
    print("starting with", act, flush=True)
    for step in range(12):
        time.sleep(0.15)
        trial.report(score=lr * step, step=step)
        print("step", step, flush=True)
    return lr

space = Searchspace(lr=("DOUBLE", [0.0, 1.0]), act=["relu", "gelu"])
experiment.launch(train, space, metric="score", num_trials=2000, workers=2, name="still running", quiet=True)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def site(project: Path) -> Iterator[Site]:
    """The dashboard of the project, with an experiment that runs until somebody stops it."""
    variables = {**os.environ, "CARGOBIKE_PROJECT": str(project)}
    with subprocess.Popen([sys.executable, "-c", LAUNCH], env=variables) as driver:
        try:
            with started_server(project) as address:
                yield Site(address, project, driver)
        finally:
            driver.terminate()
            driver.wait(60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    made.set_default_timeout(60_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Iterator[Page]:
    """A page that fails its test if a script broke, a dialog came up, or anything was asked of another origin."""
    opened = context.new_page()
    troubles: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(f"script error: {error}"))
    opened.on("console", lambda said: troubles.append(f"console: {said.text}") if said.type == "error" else None)
    opened.on(
        "request",
        lambda asked: (
            None if asked.url.startswith((site.address, "data:", "blob:")) else troubles.append(f"foreign: {asked.url}")
        ),
    )
    yield opened
    assert troubles == []


def figure(page: Page, name: str) -> Locator:
    """Return a figure's card, scrolled to and drawn."""
    card = page.locator(f"article[data-name={name}]")
    card.scroll_into_view_if_needed()
    expect(card.locator(".plot.busy")).to_have_count(0)
    expect(card.locator(".main-svg, canvas").first).to_be_visible()
    return card


def open_experiment(page: Page, site: Site, name: str) -> str:
    found = BIG if name == "big" else site.id_of(name)
    page.goto(f"{site.address}/experiments/{found}")
    expect(page.locator(".crates")).to_be_visible()
    return found


def saved(page: Page, button: Locator) -> bytes:
    with page.expect_download() as waiting:
        button.click()
    return Path(waiting.value.path()).read_bytes()


def test_the_list_shows_every_experiment_and_finds_them(page: Page, site: Site) -> None:
    page.goto(site.address)
    rows = page.locator("[data-rows] tr")
    expect(rows).to_have_count(4)
    calm = rows.filter(has_text="calm")
    expect(calm.locator(".badge")).to_have_text("completed")
    expect(calm.locator("svg.spark")).to_be_visible()
    expect(rows.filter(has_text="<script>alert(1)</script>")).to_have_count(1)
    page.get_by_label("Search").fill("calm")
    expect(rows).to_have_count(1)
    page.get_by_label("Search").fill("")
    page.locator("select[name=state]").select_option("running")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("still running")


def test_every_figure_is_drawn_and_saved(page: Page, site: Site) -> None:
    open_experiment(page, site, "calm")
    for name in ("best-so-far", "learning-curves", "pareto", "parallel-coordinates", "importance", "contour", "slices",
                 "timeline"):  # fmt: skip
        card = figure(page, name)
        assert card.get_attribute("class")
    best = figure(page, "best-so-far")
    svg = saved(page, best.get_by_text("SVG"))
    assert svg.startswith(b"<svg")
    assert saved(page, best.get_by_text("PNG")).startswith(b"\x89PNG")
    rows = list(csv.reader(io.StringIO(saved(page, best.get_by_text("CSV")).decode())))
    assert rows[0] == ["series", "x", "y"]
    assert {"completed", "failed", "best so far"} <= {row[0] for row in rows}
    parallel = figure(page, "parallel-coordinates")
    assert b"<path" in saved(page, parallel.get_by_text("SVG"))
    assert saved(page, parallel.get_by_text("PNG")).startswith(b"\x89PNG")
    best.get_by_text("Data as a table").click()
    expect(best.locator("table")).to_contain_text("best so far")
    best.get_by_role("combobox").first.select_option("time")
    expect(best.locator(".xtitle")).to_have_text("time since start (s)")


def test_brushing_selects_trials_in_the_table(page: Page, site: Site) -> None:
    open_experiment(page, site, "calm")
    canvas = figure(page, "parallel-coordinates").locator("canvas")
    box = canvas.bounding_box()
    assert box is not None
    x, top, bottom = box["x"] + 46, box["y"] + 60, box["y"] + box["height"] - 30
    page.mouse.move(x, (top + bottom) / 2)
    page.mouse.down()
    page.mouse.move(x, top, steps=5)
    page.mouse.up()
    query = page.get_by_label("Filter trials")
    expect(query).to_have_value(re.compile(r"params\.lr>=0\.\d+ params\.lr<=0?1?\.\d+"))
    expect(page.locator("[data-count]")).to_have_text(re.compile(r"^\d+ of 30 trials$"))
    card = page.locator("article[data-name=parallel-coordinates]")
    card.get_by_text("Select without a pointer").click()
    card.get_by_role("button", name="Clear").click()
    expect(query).to_have_value("")
    card.get_by_label("act: from").focus()
    page.keyboard.press("End")
    expect(query).to_have_value(re.compile(r"^params\.act="))


def test_ten_thousand_trials_are_scrolled_sorted_and_filtered(page: Page, site: Site) -> None:
    open_experiment(page, site, "big")
    table = page.get_by_role("table", name="Trials", exact=True)
    table.scroll_into_view_if_needed()
    expect(page.locator("[data-count]")).to_have_text("10,000 trials")
    expect(table).to_have_attribute("aria-rowcount", str(BIG_TRIALS + 1))
    page.locator("[data-trials]").evaluate("each => { each.scrollTop = each.scrollHeight; }")
    expect(table.get_by_role("link", name="9999")).to_be_visible()
    assert table.get_by_role("row").count() < 80
    table.get_by_role("button", name="layers").focus()
    page.keyboard.press("Enter")
    header = table.get_by_role("columnheader", name="layers")
    expect(header).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "descending")
    page.get_by_label("Filter trials").fill("act=relu layers<=1 state=failed")
    expect(page.locator("[data-count]")).to_have_text(re.compile(r"^\d{1,2} of 10,000 trials$"))
    listed = list(csv.DictReader(io.StringIO(saved(page, page.get_by_role("link", name="CSV")).decode())))
    assert {(row["params.act"], row["params.layers"], row["state"]) for row in listed} == {("relu", "1", "failed")}


def test_chosen_trials_and_experiments_are_compared(page: Page, site: Site) -> None:
    open_experiment(page, site, "calm")
    for number in (0, 1, 2):
        page.get_by_label(f"Compare trial {number}", exact=True).check()
    page.get_by_role("button", name="Compare 3").click()
    expect(page.locator("[data-hint]")).to_have_text("3 trials")
    expect(page.locator("article .main-svg").first).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^lr "))).to_have_class("differs")
    page.goto(site.address)
    for name in ("calm", "big"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    page.get_by_role("button", name="Compare 2").click()
    expect(page.locator("[data-hint]")).to_have_text("2 experiments")
    expect(page.locator("article .main-svg").first).to_be_visible()
    expect(page.locator("body")).to_contain_text("has no snapshot")


def test_a_failed_trial_shows_why(page: Page, site: Site) -> None:
    open_experiment(page, site, "calm")
    failures = page.locator("#failures")
    failures.locator("summary").first.click()
    expect(failures.locator("pre").first).to_contain_text("is too much for")
    failures.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"Trial \d+"))
    expect(page.get_by_label("Traceback")).to_contain_text("ValueError")
    expect(page.locator("[data-log]")).to_contain_text("printed by")
    expect(page.locator("[data-snapshot]")).to_contain_text("def train(lr: float, act: str)")
    expect(page.locator("[data-snapshot]")).to_contain_text("Python")
    page.get_by_role("tab", name="stdout").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="stderr")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-log-status]")).to_contain_text("nothing was written")


def test_a_hostile_experiment_does_nothing(page: Page, site: Site) -> None:
    found = next(
        journal.parent.name
        for journal in (site.project / "experiments").glob("*/journal.jsonl")
        if b"onerror" in journal.read_bytes()[:2000]
    )
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog came up: {dialog.message}"))
    page.goto(f"{site.address}/experiments/{found}")
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    for name in ("best-so-far", "parallel-coordinates", "slices", "contour", "timeline"):
        figure(page, name)
    page.get_by_label("Filter trials").fill(HOSTILE)
    page.goto(f"{site.address}/experiments/{found}/trials/1")
    expect(page.locator("[data-log]")).to_contain_text("printed by")
    page.goto(f"{site.address}/compare?trial={found}/0&trial={found}/1")
    expect(page.locator("table").first).to_be_visible()
    assert page.locator("img").count() == 0
    assert "owned" not in page.title()


def test_a_running_experiment_is_followed_and_stopped(page: Page, site: Site) -> None:
    running = open_experiment(page, site, "still running")
    head = page.locator("[data-head]")
    expect(head.locator(".badge")).to_have_text("running")
    before = int((head.locator(".count").first.text_content() or "0").replace(",", ""))
    page.wait_for_function(
        "before => Number(document.querySelector('[data-head] .count').textContent.replace(',', '')) > before",
        arg=before,
    )
    figure(page, "best-so-far")
    other = page.context.new_page()
    latest = page.evaluate(f"fetch('/api/v1/experiments/{running}/trials?state=running').then(r => r.json())")
    other.goto(f"{site.address}/experiments/{running}/trials/{latest['trials'][-1]['trial']}")
    expect(other.locator("[data-log]")).to_contain_text("step 11")
    expect(other.locator("[data-head] .badge")).to_have_text("completed")
    other.close()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Stop").click()
    expect(head.locator(".badge")).to_have_text("interrupted")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    assert site.driver.wait(60) is not None


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    calm = site.id_of("calm")
    for path in (
        "/",
        f"/experiments/{calm}",
        f"/experiments/{calm}/trials/0",
        f"/compare?trial={calm}/0&trial={calm}/1",
    ):
        page.goto(f"{site.address}{path}")
        if path == f"/experiments/{calm}":
            figure(page, "slices")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    context.close()


def test_colours_follow_the_system_until_somebody_chooses(browser: Browser, site: Site) -> None:
    def ground(page: Page) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(site.address)
    dark = ground(page)
    page.emulate_media(color_scheme="light")
    light = ground(page)
    assert dark != light
    page.get_by_role("button", name="Colours: as the system").click()
    expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    assert ground(page) == dark
    page.reload()
    assert ground(page) == dark
    context.close()


def test_the_keyboard_reaches_everything(page: Page, site: Site) -> None:
    page.goto(site.address)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Search")).to_be_focused()
    for landmark in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(landmark)).to_have_count(1)
    open_experiment(page, site, "calm")
    figure(page, "best-so-far")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, a[href], input, select')]
        .filter((each) => each.checkVisibility() && !each.closest('.modebar, .crates'))
        .filter((each) => !each.textContent.trim() && !each.getAttribute('aria-label') && !each.labels?.length)
        .map((each) => each.outerHTML)"""
    )
    assert nameless == []


def test_the_token_leaves_the_address(browser: Browser, project: Path) -> None:
    with started_server(project, "--token") as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_role("heading", name="Experiments")).to_be_visible()
        assert "#" not in page.url
        page.go_back()
        assert "#" not in page.url
        context.clear_cookies()
        page.goto(address.partition("/login")[0])
        expect(page.get_by_role("heading", name="Show your token")).to_be_visible()
        context.close()
