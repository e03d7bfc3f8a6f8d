from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cargobike.cli.app import app
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import Command, Product, commands, own_products, products

ORDER = (
    "demo run ls show compare tag note logs ui tensorboard stop resume reproduce export import rm bench doctor version"
)

OTHER = """
from cargobike.core.registering.products import Command, Product

GARDEN = Product(name="garden", title="Garden", commands=(Command("water", "garden.watering", "Water the plants."),))
TAKEN = Product(name="data", title="Another")
"""
WATERING = """
def water(litres: int) -> None:
    print(f"{litres} litres")
"""


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of other people that adds a product, one that is broken, and one under a name that is taken."""
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden" / "__init__.py").write_text(OTHER)
    (tmp_path / "garden" / "watering.py").write_text(WATERING)
    metadata = tmp_path / "garden-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: garden\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[cargobike.products]\ngarden = garden:GARDEN\nbroken = garden:MISSING\ntaken = garden:TAKEN\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    products.cache_clear()
    yield tmp_path
    products.cache_clear()
    for name in ("garden", "garden.watering"):
        sys.modules.pop(name, None)


def test_every_path_of_our_own_products_leads_somewhere() -> None:
    paths = [
        path
        for product in own_products()
        for path in (product.kind, product.tables, product.pages, product.find_page, product.edges)
        if path
    ]
    assert paths
    for path in paths:
        assert load(path) is not None
    names = [product.name for product in own_products()]
    assert len(names) == len(set(names))
    assert {"experiments", "data"} <= set(names)


def test_commands_are_listed_in_the_order_in_which_people_meet_them() -> None:
    listed = [name for name in commands(own_products()) if name in ORDER.split()]
    assert listed == ORDER.split()


def test_a_command_stands_behind_the_one_that_it_names_and_the_first_of_a_name_counts() -> None:
    first = Product(name="a", title="A", commands=(Command("x", "m", "1"), Command("y", "m", "2")))
    second = Product(name="b", title="B", commands=(Command("z", "n", "3", after="x"), Command("y", "n", "4")))
    listed = commands((first, second))
    assert list(listed) == ["x", "z", "y"]
    assert listed["y"].module == "m"
    assert list(commands((second,))) == ["z", "y"]


def test_another_package_adds_a_product(other_package: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        names = [product.name for product in products()]
    assert names == [*(product.name for product in own_products()), "garden"]
    assert "The product broken (garden:MISSING) cannot be loaded" in caplog.text
    assert "The product taken (garden:TAKEN) is left out" in caplog.text


def test_a_command_of_another_package_is_listed_and_runs(other_package: Path) -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "water" in shown
    assert "Water the plants." in shown
    assert CliRunner().invoke(app, ["water", "3"]).stdout == "3 litres\n"


LOADED = """
import json, sys
from typer.testing import CliRunner
from cargobike.cli.app import app
before = set(sys.modules)
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by(*words: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


def test_help_loads_no_module_of_a_command() -> None:
    ours = {name for name in loaded_by("--help") if name.startswith("cargobike.")}
    assert "cargobike.experiments.product" in ours
    assert [name for name in ours if not name.endswith(".product") and name.count(".") > 1] == []


def test_a_command_of_our_own_does_not_wait_for_the_metadata_of_all_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        asked.append(group)
        return []

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    products.cache_clear()
    assert CliRunner().invoke(app, ["version"]).exit_code == 0
    assert asked == []
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0
    assert asked == ["cargobike.products"]
    products.cache_clear()
