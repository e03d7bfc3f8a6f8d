from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import cargobike.ui.pages
from cargobike.core.layout import ExperimentFolder
from cargobike.core.seen import SpaceChanged
from cargobike.experiments.results.report import report_page, write_report
from cargobike.experiments.results.summary import summary_html
from cargobike.store.history.annotations import annotate
from support.sample_records import HOSTILE, SPACE, Story, ablated, compromising, hostile, lively

PAGES = Path(cargobike.ui.pages.__file__).parent
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
BLOCK = re.compile(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', re.DOTALL)


class Elements(HTMLParser):
    """Collects the elements of a page as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.shown = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.shown += data


def folder(tmp_path: Path) -> ExperimentFolder:
    return ExperimentFolder(tmp_path / "experiment")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_page(lively(), folder(tmp_path_factory.mktemp("lively")), pareto=[("accuracy", "latency_ms")])


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = folder(tmp_path_factory.mktemp("hostile"))
    logs = place.trial(4).stderr
    logs.parent.mkdir(parents=True)
    logs.write_text(f"log: {HOSTILE}\n", encoding="utf-8")
    return report_page(hostile(), place)


def blocks(page: str) -> dict[str, Any]:
    return {name: json.loads(content) for name, content in BLOCK.findall(page)}


def test_the_page_tells_the_facts(page: str) -> None:
    shown = Elements(page).shown
    record = lively()
    assert record.best is not None
    for fact in ("digits", record.id, "train.py:train", f"{record.best.value:.6g}", f"trial {record.best.number}"):
        assert fact in shown
    for name in SPACE.names:
        assert name in shown


def test_every_place_has_its_figure_and_every_link_its_target(page: str) -> None:
    elements = Elements(page).found
    figures = blocks(page)["figure-data"]
    places = {attrs["data-figure"] for _, attrs in elements if "data-figure" in attrs}
    places |= {attrs["data-shows"] for _, attrs in elements if "data-shows" in attrs}
    assert places == set(figures)
    assert {"best", "best-by-time", "curves", "importance", "slice-0", "contour", "parallel", "timeline"} <= places
    ids = [attrs["id"] for _, attrs in elements if attrs.get("id")]
    assert len(ids) == len(set(ids))
    links = {str(attrs["href"]) for tag, attrs in elements if tag == "a"}
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_the_table_holds_every_trial_with_numbers_as_numbers(page: str) -> None:
    table = blocks(page)["table-data"]
    record = lively()
    assert table["columns"] == ["trial", "state", "accuracy", "latency_ms", *SPACE.names, "seconds", "attempts"]
    assert len(table["rows"]) == len(record.trials)
    for row, trial in zip(table["rows"], record.trials.values(), strict=True):
        cells = dict(zip(table["columns"], row, strict=True))
        assert (cells["trial"], cells["state"], cells["accuracy"]) == (trial.number, trial.state.value, trial.value)
        assert cells["lr"] == trial.params["lr"]
        assert cells["momentum"] == trial.params.get("momentum")
    assert record.best is not None
    assert (table["best"], table["falling"]) == (record.best.number, True)


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    elements = Elements(page).found
    assert {"html", "style", "script", "table"} <= {tag for tag, _ in elements}, "all of the page was looked at"
    for tag, attrs in elements:
        assert "src" not in attrs, tag
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
    assert "default-src 'none'" in html.unescape(page)


def test_no_figure_offers_to_send_its_data_away(page: str) -> None:
    scripts = {path.name: path.read_text() for path in PAGES.rglob("*.js")}
    drawing = {name for name, code in scripts.items() if re.search(r"Plotly\.(react|newPlot)\(", code)}
    assert drawing == {"figure.js", "figures.js"}
    for name in drawing:
        assert 'showSendToCloud: false, plotlyServerURL: ""' in scripts[name], name
    assert scripts["figures.js"] in page


def test_the_policy_allows_the_scripts_of_the_page_and_no_other(hostile_page: str) -> None:
    (policy,) = [attrs["content"] for tag, attrs in Elements(hostile_page).found if tag == "meta" and "content" in attrs
                 and attrs.get("http-equiv")]  # fmt: skip
    allowed = set(re.findall(r"'sha256-([^']+)'", policy or ""))
    scripts = SCRIPT.findall(hostile_page)
    assert len(scripts) == 3
    assert {base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in scripts} == allowed
    assert "'unsafe-inline'" not in (policy or "").partition("style-src")[0]


def test_text_of_strangers_makes_no_elements(hostile_page: str) -> None:
    elements = Elements(hostile_page).found
    assert not [tag for tag, _ in elements if tag == "img"]
    assert not [name for _, attrs in elements for name in attrs if name.startswith("on")]
    assert sum(tag == "script" for tag, _ in elements) == 5, "two of data, three of code"
    without_scripts = BLOCK.sub("", SCRIPT.sub("", hostile_page))
    assert "\x1b" not in without_scripts
    assert "\x00" not in without_scripts


def test_text_of_strangers_is_still_shown(hostile_page: str) -> None:
    shown = Elements(hostile_page).shown
    assert shown.count("<img src=x onerror=alert(1)>") >= 6, "name, description, function, host, parameter, traceback"
    assert "log: <img src=x" in shown
    assert any(HOSTILE in row for row in blocks(hostile_page)["table-data"]["rows"])


def test_failures_are_told_once_for_each_kind(tmp_path: Path) -> None:
    story = Story(SPACE)
    for index in range(9):
        number = story.start({"lr": 0.1})
        story.fail(
            number,
            f"Traceback (most recent call last):\n  line {index}\n{['ValueError: a', 'OSError: b'][index % 3 == 0]}",
        )
    shown = Elements(report_page(story.end(), folder(tmp_path))).shown
    assert "9 of 9 trials failed, in 2 different ways" in shown
    assert shown.count("ValueError: a") == 2, "as a heading and in one traceback"
    assert "trials 1, 2, 4, 5, 7, 8" in shown


def test_several_objectives_show_their_compromises(tmp_path: Path) -> None:
    page = report_page(compromising(), folder(tmp_path))
    shown = Elements(page).shown
    assert "best compromises" in shown
    assert "accuracy (max), latency_ms (min)" in shown
    assert "latency_ms <= 7" in shown
    assert {"tradeoff-0", "best", "importance"} <= set(blocks(page)["figure-data"])
    assert "breaks limits by" in blocks(page)["table-data"]["columns"]


def test_a_search_that_stopped_most_trials_compares_them_at_an_earlier_step(tmp_path: Path) -> None:
    story = Story(SPACE, metric="accuracy")
    for index in range(40):
        number = story.start({"lr": 0.001 * (index + 1), "layers": index % 5 + 1})
        story.report(number, [0.01 * index] * (9 if index % 8 == 0 else 3))
        if index % 8 == 0:
            story.complete(number, 0.01 * index)
        else:
            story.stop(number)
    page = report_page(story.end(), folder(tmp_path))
    assert "compared by what they had reported at step 2" in Elements(page).shown
    assert "accuracy at step 2" in Elements(page).shown
    assert "importance" in blocks(page)["figure-data"]
    assert len(blocks(page)["table-data"]["rows"]) == 40


def test_an_ablation_has_its_figure_first(tmp_path: Path) -> None:
    figures = blocks(report_page(ablated(), folder(tmp_path)))["figure-data"]
    assert next(iter(figures)) == "ablation"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_page_can_be_written_at_any_time(tmp_path: Path, count: int) -> None:
    story = Story(SPACE, metric="accuracy")
    for index in range(count):
        story.report(story.start({"lr": 0.1 * (index + 1)}), [0.1])
    assert "No trial has completed" in Elements(report_page(story.so_far(), folder(tmp_path))).shown


def test_scores_that_are_no_numbers_are_told(tmp_path: Path) -> None:
    story = Story()
    story.complete(story.start({"x": 1}), float("nan"))
    story.complete(story.start({"x": 2}), float("inf"))
    table = blocks(report_page(story.end(), folder(tmp_path)))["table-data"]
    assert [row[2] for row in table["rows"]] == ["nan", "inf"]


def test_the_file_is_written_whole_and_replaces_an_older_one(tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.html"
    first = write_report(lively(3), folder(tmp_path), target)
    second = write_report(lively(12), folder(tmp_path), str(target))
    assert first == second == target
    assert len(blocks(target.read_text(encoding="utf-8"))["table-data"]["rows"]) == 12
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_a_notebook_shows_a_table_and_a_drawing() -> None:
    record = lively()
    shown = summary_html(record)
    assert record.best is not None
    assert f"<td>{record.best.number}</td><td>{record.best.value:.6g}</td>" in shown
    assert shown.count("<tr>") == 6
    assert "<svg" in shown
    assert len(shown) < 30_000
    assert len(summary_html(lively(5000))) < 60_000


def test_a_notebook_shows_strangers_text_as_text() -> None:
    elements = Elements(summary_html(hostile()))
    assert {tag for tag, _ in elements.found} <= {
        "div", "b", "code", "table", "thead", "tbody", "tr", "th", "td", "svg", "g", "circle", "path", "text",
    }  # fmt: skip
    assert "<img src=x" in elements.shown


def test_a_notebook_shows_an_experiment_that_has_nothing_yet() -> None:
    assert "no trials" in summary_html(Story().so_far())
    assert "No trial has completed" in summary_html(Story().so_far())


def test_hidden_trials_are_left_out_and_counted(tmp_path: Path) -> None:
    record, place = lively(), folder(tmp_path)
    assert record.best is not None
    place.root.mkdir()
    annotate(place, marks={record.best.number: "hidden"})
    shown = report_page(record, place)
    table = json.loads(html.unescape(dict(BLOCK.findall(shown))["table-data"]))
    assert record.best.number not in [row[0] for row in table["rows"]]
    assert table["best"] != record.best.number
    assert "1 trial, left out here" in shown
    assert f"trial {record.best.number}<" not in shown


def test_a_changed_space_is_told(tmp_path: Path) -> None:
    record = lively()
    before = SPACE.describe()
    record.space_changes.append(SpaceChanged(5.0, 7, [{**before[0], "high": 9.0}, *before[1:]], before))
    shown = Elements(report_page(record, folder(tmp_path))).shown
    assert "space changed" in shown
    assert "after 7 trials: " in shown
