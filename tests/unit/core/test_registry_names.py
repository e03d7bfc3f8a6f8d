"""Registries: our own names, aliases, and names that installed packages add."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cargobike import experiment
from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.registering.registry import Registry
from cargobike.engines.local.engine import LocalEngine
from cargobike.engines.registry import resolve_engine
from cargobike.engines.spark.engine import SparkEngine
from cargobike.search.optimizers.registry import optimizer_names, resolve_optimizer
from cargobike.search.rules.stop_rules import resolve_stop_rule
from cargobike.store.files.remote import RemoteProject

COLOURS = Registry(
    "colour", "cargobike.colours", {"red": "builtins:int", "dark_red": "builtins:float"}, otherwise="mix"
)

MODULE = """
def open_vault(url):
    import fsspec
    return fsspec.filesystem("memory"), "/vault/" + url.partition("://")[2]


from cargobike.engines.local.engine import LocalEngine
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.rules.stop_rules import MedianRule


class Backwards(RandomSearch):
    name = "backwards"


class Second(MedianRule):
    pass


class Shed(LocalEngine):
    name = "shed"

    @classmethod
    def at(cls, address):
        made = cls()
        made.address = address
        return made
"""

ENTRY_POINTS = """
[cargobike.optimizers]
backwards = acme_cargobike:Backwards
tpe = acme_cargobike:Backwards
broken = acme_cargobike:Missing

[cargobike.stop_rules]
second-best = acme_cargobike:Second

[cargobike.storage]
vault = acme_cargobike:open_vault

[cargobike.engines]
shed = acme_cargobike:Shed
"""


@pytest.fixture
def _acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package of someone else's, as pip would."""
    (tmp_path / "acme_cargobike.py").write_text(MODULE)
    metadata = tmp_path / "acme_cargobike-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-cargobike\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_cargobike", raising=False)


def test_names_are_understood_as_people_write_them() -> None:
    assert COLOURS.find("red") is int
    assert COLOURS.find(" Red") is int


def test_an_unknown_name_is_refused_with_all_that_are_known() -> None:
    with pytest.raises(
        InvalidInputError, match=r"no colour 'rad'; known are dark_red, red, or mix\. Did you mean 'red'"
    ):
        COLOURS.find("rad")


@pytest.mark.usefixtures("_acme")
def test_a_package_adds_an_optimizer_a_rule_and_an_engine() -> None:
    assert resolve_optimizer("backwards").name == "backwards"
    assert "backwards" in optimizer_names()
    assert type(resolve_stop_rule("second-best")).__name__ == "Second"
    with resolve_engine("shed") as engine:
        assert engine.name == "shed"
    with resolve_engine("shed://garden:1") as engine:
        assert vars(engine)["address"] == "shed://garden:1"


@pytest.mark.usefixtures("_acme")
def test_a_package_adds_a_storage() -> None:
    storage = RemoteProject("vault://team")
    storage.write("note", b"hello")
    assert storage.read("note") == b"hello"
    assert RemoteProject("memory://elsewhere").read("note") is None


@pytest.mark.usefixtures("_acme")
def test_a_search_runs_with_what_a_package_adds() -> None:
    result = experiment.launch(
        lambda x: x, {"x": ("INTEGER", [1, 3])}, optimizer="backwards", engine="shed", num_trials=2, quiet=True
    )
    assert result.counts == {"completed": 2}


@pytest.mark.usefixtures("_acme")
def test_our_own_names_win_over_those_of_packages() -> None:
    assert type(resolve_optimizer("tpe")).__name__ == "TPE"


@pytest.mark.usefixtures("_acme")
def test_what_cannot_be_loaded_is_named_with_its_place() -> None:
    with pytest.raises(CargobikeError, match=r"'broken' is registered as acme_cargobike:Missing .* Mend or remove"):
        resolve_optimizer("broken")


def test_engines_are_found_by_name_address_and_object() -> None:
    with LocalEngine() as engine:
        assert resolve_engine(engine) is engine
    with resolve_engine("local") as engine:
        assert isinstance(engine, LocalEngine)
    assert isinstance(resolve_engine("spark://host:7077"), SparkEngine)
    assert isinstance(resolve_engine("k8s://host:443"), SparkEngine)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("sprak", r"no engine 'sprak'; known are .*local, spark.* Did you mean 'spark'"),
        ("local://here", "'local' takes no address"),
        (7, "engine=7 is neither a name nor an engine object"),
    ],
)
def test_an_engine_that_is_none_is_refused(engine: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        resolve_engine(engine)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("skopt", "'tpe' or 'auto'"),
        ("RandomSampler", "'random'"),
        ("GridSearchCV", "'grid'"),
        ("QMCSampler", "'sobol'"),
    ],
)
def test_the_names_of_other_tools_are_answered_with_ours(theirs: str, ours: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{ours}.* here"):
        resolve_optimizer(theirs)
