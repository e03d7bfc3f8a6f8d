"""Figures and page of a benchmark, from outcomes that are made up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cargobike.bench.cases import SIZES, WAYS, Case, Outcome, cases_of
from cargobike.bench.figures import draw_communication, draw_convergence, draw_speed_by_size, draw_speed_by_workers
from cargobike.bench.page import write_bench_page
from cargobike.bench.running import Settings
from cargobike.bench.summary import HEADINGS, facts_of, row_of


def outcome(case: Case) -> Outcome:
    step_s = 0.1 if case.way == "one" else 0.1 * (1 + list(WAYS).index(case.way))
    return Outcome(
        case=case,
        experiment="none",
        images_per_s=64 * case.workers / step_s,
        uncertainty=1.0,
        jitter=2.0,
        step_s=step_s,
        alone_s=0.1,
        communication=1 - 0.1 / step_s,
        sent_bytes=4.0 * SIZES[case.model].parameters,
        loss=0.25,
        delay=0.5 if case.way == "ps-async" else None,
        dropped=3 if case.way == "ps-async" else None,
        curve=((1, step_s, 1.0), (10, 10 * step_s, 0.25)),
    )


@pytest.fixture
def outcomes() -> list[Outcome]:
    return [outcome(case) for case in cases_of(list(SIZES), list(WAYS), [2, 4])]


def test_sizes_are_those_of_the_table() -> None:
    assert {name: (size.values, round(size.parameters / 1e6, 1)) for name, size in SIZES.items()} == {
        "mnist": (784, 1.9),
        "higgs": (28, 8.5),
        "molecular": (2871, 14.3),
    }


def test_cases_are_ordered_by_size_and_said_once() -> None:
    cases = cases_of(["molecular", "mnist", "mnist"], ["local-sgd", "one"], [4, 2, 4])
    assert [(each.model, each.way, each.workers) for each in cases] == [
        ("mnist", "one", 1),
        ("mnist", "local-sgd", 2),
        ("mnist", "local-sgd", 4),
        ("molecular", "one", 1),
        ("molecular", "local-sgd", 2),
        ("molecular", "local-sgd", 4),
    ]


def named(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {trace["name"]: trace for trace in spec["data"]}


def test_convergence_shows_each_way_once_with_the_most_workers(outcomes: list[Outcome]) -> None:
    spec = draw_convergence(outcomes, "mnist")
    assert [trace["name"] for trace in spec["data"]] == list(WAYS.values())
    assert named(spec)["all-reduce"]["x"] == [pytest.approx(0.2), pytest.approx(2.0)]
    assert "4 workers" in spec["layout"]["title"]["subtitle"]["text"]


def test_speed_by_workers_has_a_point_for_each_number_and_what_would_be_ideal(outcomes: list[Outcome]) -> None:
    traces = named(draw_speed_by_workers(outcomes, "higgs"))
    assert traces["all-reduce"]["x"] == [2, 4]
    assert traces["all-reduce"]["y"] == [pytest.approx(640), pytest.approx(1280)]
    assert traces["as many times one process"]["y"] == [pytest.approx(640 * n) for n in (1, 2, 4)]
    assert traces["one process"]["x"] == [1]


def test_speed_by_size_has_a_point_for_each_network(outcomes: list[Outcome]) -> None:
    traces = named(draw_speed_by_size(outcomes))
    assert all(trace["x"] == [size.parameters for size in SIZES.values()] for trace in traces.values())
    assert traces["all-reduce"]["y"] == [pytest.approx(1280)] * 3


def test_communication_is_a_share_and_one_process_has_none(outcomes: list[Outcome]) -> None:
    traces = named(draw_communication(outcomes))
    assert "one process" not in traces
    assert traces["all-reduce"]["y"] == [pytest.approx(50.0)] * 3


def test_a_network_that_was_not_measured_one_way_leaves_a_gap(outcomes: list[Outcome]) -> None:
    kept = [each for each in outcomes if (each.case.model, each.case.way) != ("higgs", "ps-sync")]
    assert named(draw_communication(kept))["parameter server, sync"]["y"][1] is None


def test_rows_fit_their_headings(outcomes: list[Outcome]) -> None:
    words = [word for word, _ in HEADINGS]
    rows = {each.case.way: dict(zip(words, row_of(each), strict=True)) for each in outcomes}
    assert (rows["one"]["communication"], rows["one"]["dropped"]) == ("–", "–")
    assert (rows["ps-async"]["mean delay"], rows["ps-async"]["dropped"]) == ("0.50", "3")
    assert rows["allreduce"]["communication"] == "50%"


def test_the_page_holds_all_figures_and_nothing_from_elsewhere(outcomes: list[Outcome], tmp_path: Path) -> None:
    page = write_bench_page(outcomes, facts_of(Settings()), tmp_path / "new" / "bench.html").read_text()
    (data,) = re.findall(r'id="figure-data">(.*?)</script>', page, re.DOTALL)
    figures = set(json.loads(data))
    assert figures == {
        *(f"convergence-{name}" for name in SIZES),
        *(f"workers-{name}" for name in SIZES),
        "size",
        "communication",
    }
    assert set(re.findall(r'data-figure="([^"]+)"', page)) == figures
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)


def test_one_run_makes_a_page_too(tmp_path: Path) -> None:
    alone = [outcome(Case(model="mnist", way="one", workers=1))]
    page = write_bench_page(alone, facts_of(Settings()), tmp_path / "bench.html").read_text()
    assert 'data-figure="convergence-mnist"' in page
    assert 'data-figure="communication"' not in page
