"""Fingerprints of code: what changes them, and what does not."""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from cargobike.pipelines.values.code import fingerprint, fingerprints, function_place

STEP = """
    import functools
    import tidy
    from shapes import Square

    LIMIT = 3
    UNUSED = 1

    def double(x):
        return 2 * x

    def scaled(by):
        def scale(x):
            return x * by
        return scale

    class Kind:
        def method(self, x):
            return double(x)

    def step(x, start=0):
        return tidy.clean(double(x)) + LIMIT

    def late(x):
        import tidy
        return tidy.clean(x)

    def shaped(x):
        return Square(x).area()

    def with_class(x):
        return Kind().method(x)
"""
TIDY = "import deeper\ndef clean(x):\n    return deeper.shift(x)\n"
DEEPER = "def shift(x):\n    return x + 1\n"
SHAPES = (
    "class Square:\n    def __init__(self, x):\n        self.x = x\n    def area(self):\n        return self.x ** 2\n"
)
FILES = {"stepfile": textwrap.dedent(STEP), "tidy": TIDY, "deeper": DEEPER, "shapes": SHAPES}


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports the files anew, after a replacement in one of them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    # Two edits within a second that leave a file as long as it was look alike to Python's own cache.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(file: str = "", old: str = "", new: str = "") -> Any:
        for name, text in FILES.items():
            assert name != file or old in text
            (tmp_path / f"{name}.py").write_text(text.replace(old, new) if name == file else text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("stepfile")

    yield load
    for name in FILES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("function", "file", "old", "new"),
    [
        ("step", "stepfile", "+ LIMIT", "- LIMIT"),
        ("step", "stepfile", "LIMIT = 3", "LIMIT = 4"),
        ("step", "stepfile", "return 2 * x", "return 3 * x"),
        ("step", "stepfile", "start=0", "start=1"),
        ("step", "tidy", "shift(x)", "shift(x + 1)"),
        ("step", "deeper", "x + 1", "x + 2"),
        ("late", "deeper", "x + 1", "x + 2"),
        ("shaped", "shapes", "** 2", "** 3"),
        ("with_class", "stepfile", "return 2 * x", "return 3 * x"),
    ],
)
def test_a_change_of_what_a_step_reaches_changes_its_fingerprint(
    imported: Any, function: str, file: str, old: str, new: str
) -> None:
    before = fingerprint(getattr(imported(), function))
    assert fingerprint(getattr(imported(), function)) == before  # the same in another process's eyes

    assert fingerprint(getattr(imported(file, old, new), function)) != before


def test_what_a_step_does_not_reach_does_not_count(imported: Any) -> None:
    before = fingerprint(imported().step)

    assert fingerprint(imported("stepfile", "UNUSED = 1", "UNUSED = 2").step) == before
    assert fingerprint(imported("shapes", "** 2", "** 3").step) == before


def test_what_a_step_closes_over_counts(imported: Any) -> None:
    module = imported()

    assert fingerprint(module.scaled(2)) == fingerprint(module.scaled(2))
    assert fingerprint(module.scaled(2)) != fingerprint(module.scaled(3))
    assert fingerprint(module.functools.partial(module.step, start=1)) != fingerprint(module.step)


def test_changed_parts_have_names(imported: Any) -> None:
    before = fingerprints(imported().step)
    after = fingerprints(imported("deeper", "x + 1", "x + 2").step)

    assert {name for name in before if before[name] != after[name]} == {"file deeper"}
    assert {"step", "double", "LIMIT", "file tidy"} <= before.keys()


def test_a_function_at_the_top_of_a_file_can_be_found_again(imported: Any, tmp_path: Path) -> None:
    module = imported()

    assert function_place(module.step) == f"{tmp_path}/stepfile.py:step"
    assert function_place(module.scaled(2)) == ""


def test_a_file_that_is_edited_after_it_was_loaded_is_no_stale_hit(imported: Any, tmp_path: Path) -> None:
    module = imported()
    before = fingerprint(module.step)
    (tmp_path / "stepfile.py").write_text(FILES["stepfile"].replace("return 2 * x", "return 3 * x"))
    edited = fingerprint(module.double)
    assert edited != fingerprint(imported("stepfile", "return 2 * x", "return 3 * x").double)

    changed = imported("deeper", "x + 1", "x + 2")
    assert fingerprint(changed.step) != before
    assert fingerprint(changed.step, {"deeper": DEEPER, "tidy": TIDY}) == before
