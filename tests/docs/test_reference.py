"""The reference page names everything that there is, and the index leads to every page."""

from __future__ import annotations

import inspect
import re

import cargobike
from cargobike import devices, experiment, project, tensorboard, trial
from cargobike.core import settings
from cargobike.core.registering.products import commands, own_products
from cargobike.experiments.results.result import Result
from support import snippets

PAGE = (snippets.ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"\w+", PAGE))


def test_every_public_name_is_there() -> None:
    assert set(cargobike.__all__) - {"__version__"} - WORDS == set()


def test_every_argument_of_launch_is_there_and_no_other() -> None:
    start = PAGE.index("What `launch` takes")
    table = PAGE[start : PAGE.index("##", start)]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == set(inspect.signature(experiment.launch).parameters)


def test_every_attribute_of_a_result_is_there() -> None:
    names = {name for name in dir(Result) if not name.startswith("_")} - {"from_record"}
    names |= set(Result.__annotations__) - {"_record"}
    assert names - WORDS == set()


def test_every_name_behind_the_small_doors_is_there() -> None:
    assert {name for name in dir(trial) if not name.startswith("_")} - {"TrialPaused"} - WORDS == set()
    for door in (devices, tensorboard):
        assert set(door.__all__) - WORDS == set()
    assert {"path", "use"} <= set(project.__all__) & WORDS


def test_every_command_is_there_and_no_other() -> None:
    assert set(re.findall(r"^\| `cargobike (\w+)", PAGE, re.MULTILINE)) == set(commands(own_products()))


def test_every_environment_variable_is_there_with_its_words_and_no_other() -> None:
    rows = dict(re.findall(r"^\| `(CARGOBIKE_\w+)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows == settings.FOR_PEOPLE


def test_the_index_leads_to_every_page() -> None:
    docs = snippets.ROOT / "docs"
    index = (docs / "index.md").read_text() + (docs / "decisions" / "README.md").read_text()
    pages = [page for page in docs.rglob("*.md") if page.name not in {"index.md", "README.md"}]
    assert [page.name for page in pages if f"{page.name})" not in index] == []
