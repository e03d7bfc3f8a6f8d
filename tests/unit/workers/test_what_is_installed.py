"""What counts as installed: a template imports that for all trials, and nothing of the user's own."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import ModuleType

import pytest

from cargobike.workers.runner import is_library


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("/usr/lib/python3/dist-packages/numbers_fast/__init__.py", True),
        ("/usr/local/lib/python3.12/dist-packages/numbers_fast.py", True),
        ("/home/ada/.local/lib/python3.11/site-packages/numbers_fast/__init__.py", True),
        ("/home/ada/work/numbers_fast.py", False),
        ("/home/ada/site-packages.py", False),
        (None, False),
    ],
)
def test_installed_is_what_lies_where_packages_do_also_outside_of_this_environment(
    origin: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("numbers_fast")
    module.__spec__ = importlib.machinery.ModuleSpec("numbers_fast", None, origin=origin)
    monkeypatch.setitem(sys.modules, "numbers_fast", module)
    assert is_library("numbers_fast") is expected


def test_the_standard_library_and_our_own_modules_are() -> None:
    assert is_library("json")
    assert is_library("cargobike.experiment")
    assert not is_library("no_such_module")


@pytest.mark.parametrize("name", ["array", "_struct", "email.message", "numpy"])
def test_so_is_what_is_compiled_and_what_lies_in_packages(name: str) -> None:
    importlib.import_module(name)
    assert is_library(name)
