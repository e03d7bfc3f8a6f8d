from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from cargobike import experiment
from cargobike.experiments.asking.function import find_train

SELFIE = """
from cargobike import experiment

def train(x):
    return x

best = experiment.launch("selfie.py:train", {"x": [1, 2]}, workers=1, quiet=True).best
print(best.params)
"""


def test_a_program_may_name_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "selfie.py").write_text(SELFIE)
    done = subprocess.run(
        [sys.executable, "selfie.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "{'x': 2}"


@pytest.mark.usefixtures("_own_imports")
def test_a_launch_in_an_imported_file_is_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "selfie.py").write_text(SELFIE)
    with caplog.at_level(logging.WARNING):
        train = find_train(f"{tmp_path}/selfie.py:train")
    assert train.function(x=3) == 3
    assert "selfie.py launches an experiment when it is imported" in caplog.text
    assert experiment.list() == []


@pytest.mark.usefixtures("_own_imports")
def test_a_launch_that_a_file_guards_badly_is_left_out_too(tmp_path: Path) -> None:
    (tmp_path / "careful.py").write_text(
        "from cargobike import experiment\n"
        "def train(x):\n    return x\n"
        "try:\n    experiment.launch(train, {'x': [1]})\n"
        "except Exception:\n    train = None\n"
    )
    assert find_train(f"{tmp_path}/careful.py:train").function(x=3) == 3


@pytest.fixture
def _own_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the files that a test imports, and where they were."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
