"""The table of slow tests names tests that exist, and leaves one of each kind to the quick run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from support.slow import SLOW, is_slow, may_be_slow, pytest_ignore_collect

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("file", SLOW)
def test_what_is_listed_exists(file: str) -> None:
    text = (TESTS / file).read_text()
    assert [name for name in SLOW[file] if f"def {name.partition('[')[0]}(" not in text] == []


@pytest.mark.parametrize("folder", sorted({file.partition("/")[0] for file in SLOW}))
def test_each_folder_has_quick_tests_too(folder: str) -> None:
    files = [path.relative_to(TESTS).as_posix() for path in (TESTS / folder).rglob("test_*.py")]
    assert any(SLOW.get(file) != () for file in files)


def test_names_are_matched_with_and_without_their_parameters() -> None:
    assert is_slow("docs/test_examples.py", "test_a_gang_trains_digits[diloco]")
    assert not is_slow("docs/test_examples.py", "test_a_gang_trains_digits[ddp]")
    assert is_slow("docs/test_examples.py", "test_ranks_train_with_tensorflow[ps]")
    assert is_slow("spark/test_spark_data.py", "anything")
    assert not is_slow("docs/test_links.py", "anything")


def test_files_with_slow_tests_are_collected_for_them() -> None:
    assert may_be_slow("docs/test_examples.py", TESTS / "docs/test_examples.py")
    assert may_be_slow("faults/test_chaos.py", TESTS / "faults/test_chaos.py")
    assert may_be_slow("scenario/test_models_on_storage.py", TESTS / "scenario/test_models_on_storage.py")
    assert not may_be_slow("docs/test_links.py", TESTS / "docs/test_links.py")


@pytest.mark.parametrize(("expression", "left_out"), [("not slow", True), ("slow", False), ("", False)])
def test_a_file_that_is_slow_as_a_whole_is_left_out_of_the_quick_run(expression: str, left_out: bool) -> None:
    file = next(name for name, tests in SLOW.items() if not tests)
    config = SimpleNamespace(rootpath=TESTS.parent, option=SimpleNamespace(markexpr=expression))
    assert bool(pytest_ignore_collect(TESTS / file, cast("pytest.Config", config))) is left_out
