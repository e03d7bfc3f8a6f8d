"""An older library's name gives our module, the very same one."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator

import cloudpickle
import pytest

import cargobike.compat.maggy.names
from cargobike.compat.as_is import standing


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(standing, "_finder", standing._Finder())
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.partition(".")[0] == "maggy":
            del sys.modules[name]


def test_modules_below_are_ours_under_both_names() -> None:
    standing.stand_in("maggy")
    names = importlib.import_module("maggy.names")
    assert names is cargobike.compat.maggy.names
    assert names.__spec__ is not None
    assert names.__spec__.name == names.__name__ == "cargobike.compat.maggy.names"


def test_what_is_pickled_refers_to_our_name() -> None:
    standing.stand_in("maggy")
    names = importlib.import_module("maggy.names")
    data = cloudpickle.dumps(names)
    assert b"cargobike.compat.maggy.names" in data
    assert pickle.loads(data) is names


def test_a_module_that_we_do_not_have_is_missing_as_any_other() -> None:
    standing.stand_in("maggy")
    with pytest.raises(ModuleNotFoundError, match=r"maggy\.never_was"):
        importlib.import_module("maggy.never_was")
    with pytest.raises(ModuleNotFoundError, match=r"maggy\.names\.below"):
        importlib.import_module("maggy.names.below")


def test_other_libraries_are_left_alone() -> None:
    standing.stand_in("maggy")
    assert standing._finder.find_spec("hops.names") is None
