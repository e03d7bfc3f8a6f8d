"""Every example in a docstring is run, and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

from support.left_running import PROJECT_VARIABLE

SOURCES = Path(__file__).resolve().parents[2] / "src"


def modules_with_examples() -> list[str]:
    """Return the names of the modules whose docstrings hold examples, found without importing any."""
    paths = sorted(path for path in SOURCES.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
    return [".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__") for path in paths]


class _Finder(doctest.DocTestFinder):
    """Finds the examples of functions that are wrapped, too: those belong to the module that they were written in."""

    def _from_module(self, module: object, object: object) -> bool:
        return bool(super()._from_module(module, inspect.unwrap(object)))  # type: ignore[misc, arg-type]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PROJECT_VARIABLE, str(tmp_path / ".cargobike"))
    module = importlib.import_module(name)
    attempted = 0
    for example in _Finder(exclude_empty=True).find(module, name):
        printed: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        outcome = runner.run(example, out=printed.append)
        assert not outcome.failed, "".join(printed)
        attempted += outcome.attempted
    assert attempted, f"no example of {name} was found"
