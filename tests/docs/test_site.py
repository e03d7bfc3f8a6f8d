"""The documentation as a site: it builds without a warning, holds every public name, and needs no network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.public_names import PUBLIC

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_public_module_has_a_page_with_its_names(site: Path) -> None:
    for module, names in PUBLIC.items():
        page = (site / "api" / f"{module}.html").read_text(encoding="utf-8")
        shown = set(re.findall(r"""<h2 id=["']?(?:[\w.]+\.)?(\w+)""", page))
        missing = {name.lower() for name in names.split() if not name.startswith("_")} - {
            name.lower() for name in shown
        }
        assert not missing, module
    launch = (site / "api" / "cargobike.experiment.html").read_text(encoding="utf-8")
    assert "trial_timeout_s" in launch


def test_pages_are_read_without_a_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 100
    fetched = re.compile(
        r"""<(?:script|img|iframe)[^>]* src=["']?https?://|<link[^>]* rel=["']?stylesheet[^>]*https?://"""
    )
    assert [page.name for page in pages if fetched.search(page.read_text(encoding="utf-8"))] == []


def test_the_search_knows_pages_from_all_over_the_repository(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"guides/serving.html", "readme.html", "security.html", "api/cargobike.models.html"} <= places
