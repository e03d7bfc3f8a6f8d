"""Doing something to a module once it is there."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module, reload
from pathlib import Path
from types import ModuleType

import pytest

from cargobike.experiments.trial.meeting.later import when_imported


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "comes_later.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "comes_later", raising=False)
    return "comes_later"


def test_a_module_that_is_there_is_told_at_once(name: str) -> None:
    told: list[ModuleType] = []
    module = import_module(name)
    when_imported(name, told.append)
    assert told == [module]


def test_a_module_that_comes_later_is_told_once_it_is_complete(name: str) -> None:
    told: list[int] = []
    when_imported(name, lambda module: told.append(module.answer))
    when_imported(name, lambda module: setattr(module, "answer", 43))
    import_module("email.mime.text")
    assert told == []
    module = import_module(name)
    assert told == [42]
    assert module.answer == 43
    assert inspect.getsource(module) == "answer = 42\n"
    assert reload(module).answer == 42, "it was told already"


def test_one_that_is_not_there_is_missing_as_ever(name: str) -> None:
    when_imported("surely_not_installed", lambda module: None)
    with pytest.raises(ModuleNotFoundError):
        import_module("surely_not_installed")
