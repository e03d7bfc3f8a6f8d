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
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from support import programs
from support.dashboard_site import BIG, BIG_TRIALS, HOSTILE, Site, make_project, started_server

pytestmark = [
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
    chromium = programs.require("chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
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
    # That a filter cannot be read is answered with 422, which browsers write down as an error.
    opened.on(
        "console",
        lambda said: (
            troubles.append(f"console: {said.text}") if said.type == "error" and "422" not in said.text else None
        ),
    )
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
    page.goto(f"{site.address}/experiments")
    rows = page.locator("[data-rows] tr")
    expect(rows).to_have_count(5)
    calm = rows.filter(has_text="calm")
    expect(calm.locator(".badge")).to_have_text("completed")
    expect(calm.locator("svg.spark")).to_be_visible()
    expect(rows.filter(has_text="<script>alert(1)</script>")).to_have_count(1)
    page.get_by_label("Search", exact=True).fill("calm")
    expect(rows).to_have_count(1)
    page.get_by_label("Search", exact=True).fill("")
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
    best.hover()
    assert best.locator(".modebar-btn").count() > 0
    assert page.locator('.modebar-btn[data-title*="Share"]').count() == 0, "no data leaves this machine"
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
    page.goto(f"{site.address}/experiments")
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


def test_a_filter_that_names_nothing_says_so_beside_it(page: Page, site: Site) -> None:
    open_experiment(page, site, "calm")
    count = page.locator("[data-count]")
    expect(count).to_have_text("30 trials")
    asked = page.get_by_label("Filter trials")
    asked.fill("lrr<0.5")
    expect(count).to_contain_text("The filter names 'lrr', which no trial here has. Did you mean 'lr'?")
    expect(asked).to_have_attribute("aria-invalid", "true")
    asked.fill("")
    expect(count).to_have_text("30 trials")
    expect(asked).to_have_attribute("aria-invalid", "false")


def test_columns_are_chosen_and_remembered(page: Page, site: Site) -> None:
    open_experiment(page, site, "calm")
    heads = page.locator("[data-trials] [role=columnheader]")
    expect(heads.filter(has_text="attempts")).to_have_count(1)
    page.locator("[data-columns] summary").click()
    page.locator("[data-columns]").get_by_label("attempts").uncheck()
    expect(heads.filter(has_text="attempts")).to_have_count(0)
    page.reload()
    expect(heads.filter(has_text="took")).to_have_count(1)
    expect(heads.filter(has_text="attempts")).to_have_count(0)


def test_curves_are_looked_at_on_a_log_axis_and_smoothed(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/experiments/{site.id_of('calm')}/trials/1")
    card = page.locator("[data-curves] article")
    expect(card.locator(".main-svg").first).to_be_visible()
    plot = "document.querySelector('[data-curves] .plot')"
    names = page.evaluate(f"{plot}.data.map((trace) => trace.name)")
    assert names == ["score", "loss"]
    raw = page.evaluate(f"{plot}.data[0].y")
    card.get_by_label("log axis").check()
    page.wait_for_function(f"{plot}.layout.yaxis.type === 'log' && {plot}.layout.yaxis2.type === 'log'")
    card.get_by_label("Smoothing").select_option("0.9")
    page.wait_for_function(f"{plot}.data[0].y.at(-1) < {raw[-1]}")
    assert page.evaluate(f"{plot}.data[0].y[0]") == pytest.approx(raw[0])


def test_a_failed_experiment_begins_with_its_failures(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/experiments/{site.id_of('all fails')}")
    failures = page.locator("#failures details").first
    expect(failures).to_have_attribute("open", "")
    assert "\n" in (failures.locator("pre").text_content() or "")
    assert page.locator("main section").first.get_attribute("id") == "failures"
    expect(page.locator("[data-sections] a").first).to_have_text("Failures")


def test_tags_notes_and_marks_are_written_from_the_page(page: Page, site: Site) -> None:
    found = open_experiment(page, site, "calm")
    page.get_by_text("Tags and notes").click()
    page.get_by_label("New tag").fill("baseline")
    page.get_by_label("New note").fill("look again")
    page.get_by_role("button", name="Save", exact=True).click()
    head = page.locator("[data-head]")
    expect(head.locator(".tag")).to_have_text(["baseline"])
    expect(head.locator(".note")).to_contain_text("look again")
    page.get_by_label("Take the tag baseline away").click()
    expect(head.locator(".tag")).to_have_count(0)
    page.goto(f"{site.address}/experiments/{found}/trials/2")
    page.get_by_role("button", name="mark").click()
    expect(page.get_by_role("button", name="marked")).to_have_attribute("aria-pressed", "true")
    open_experiment(page, site, "calm")
    page.get_by_label("Filter trials").fill("mark=star")
    expect(page.locator("[data-count]")).to_have_text("1 of 30 trials")


@pytest.mark.parametrize("width", [1400, 390])
def test_axe_finds_nothing_to_complain_about(browser: Browser, site: Site, width: int) -> None:
    calm, failed = site.id_of("calm"), site.id_of("all fails")
    # Its script comes from a test library, not from the server, whose policy forbids such.
    context = browser.new_context(viewport={"width": width, "height": 900}, bypass_csp=True)
    page = context.new_page()
    found = {}
    paths = (
        "/",
        "/experiments",
        f"/experiments/{calm}",
        f"/experiments/{failed}",
        f"/experiments/{calm}/trials/1",
        "/data",
    )
    for path in (*paths, f"/compare?trial={calm}/0&trial={calm}/1"):
        page.goto(f"{site.address}{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if path == f"/experiments/{calm}":
            for name in ("best-so-far", "learning-curves", "parallel-coordinates"):
                figure(page, name)
        violations = Axe().run(page).response["violations"]
        found[path] = [(each["id"], [node["html"] for node in each["nodes"]]) for each in violations]
    assert [each for each in found.items() if each[1]] == []
    assert len(found) == 7
    context.close()


def test_states_and_the_last_column_are_whole_on_a_usual_screen(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto(f"{site.address}/experiments/{site.id_of('calm')}")
    expect(page.locator("[data-trials] .badge").first).to_be_visible()
    cut = page.evaluate(
        """() => [...document.querySelectorAll("[data-trials] [role=cell]")].filter((cell) =>
            (cell.matches(":nth-child(3)") && cell.scrollWidth > cell.clientWidth)
            || (cell.matches(":last-child") && cell.getBoundingClientRect().right > innerWidth)).length"""
    )
    assert cut == 0
    assert page.locator("[data-trials] [role=cell]:last-child").count() > 5
    context.close()


def test_on_a_phone_the_header_scrolls_away_and_sections_stay(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{site.address}/experiments/{site.id_of('calm')}")
    expect(page.locator("[data-trials] .badge").first).to_be_attached()
    page.evaluate("scrollTo(0, 2000)")
    page.wait_for_function("document.querySelector('.top').getBoundingClientRect().bottom < 0")
    assert page.evaluate("document.querySelector('.sections').getBoundingClientRect().top") == 0
    context.close()


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
    latest = page.wait_for_function(  # between two trials there is none
        "url => fetch(url).then(r => r.json()).then(found => found.trials.length && String(found.trials.at(-1).trial))",
        arg=f"/api/v1/experiments/{running}/trials?state=running",
    ).json_value()
    other.goto(f"{site.address}/experiments/{running}/trials/{latest}")
    expect(other.locator("[data-log]")).to_contain_text("step 11")
    expect(other.locator("[data-head] .badge")).to_have_text("completed")
    other.close()
    page.on("dialog", lambda dialog: dialog.accept())
    with page.expect_response("**/stop", timeout=60_000) as asked:
        page.get_by_role("button", name="Stop").click()
    assert asked.value.status == 202
    expect(head.locator(".badge")).to_have_text("interrupted", timeout=240_000)
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    assert site.driver.wait(60) is not None


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    calm = site.id_of("calm")
    for path in (
        "/",
        "/experiments",
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
    page.goto(f"{site.address}/experiments")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Where this is").get_by_role("link", name="Start")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Search", exact=True)).to_be_focused()
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
