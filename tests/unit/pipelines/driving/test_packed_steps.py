"""What a template imports for all steps of a run: the libraries of their files, and of the user's modules there."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from cargobike.pipelines.driving.packing import _libraries


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    files = {
        "own_steps_here": "import json\nimport own_models\nfrom own_rows import Row\ndef step():\n    return Row\n",
        "own_models": "import decimal, sys\nimport own_steps_here\n",
        "own_rows": "from fractions import Fraction\nclass Row:\n    pass\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("own_steps_here")


def test_libraries_of_the_users_own_modules_count_and_the_modules_themselves_do_not(module: Any) -> None:
    assert _libraries(module.step) == ["decimal", "fractions", "json"]


def test_a_function_without_a_file_has_none() -> None:
    assert _libraries(len) == []
