"""Names of older libraries are put on the path of a program and of what it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cargobike.compat.as_is import surroundings
from cargobike.compat.translations import LIBRARIES
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("PYTHONPATH", settings.PACKAGE_PATH):
        monkeypatch.setenv(name, "")


def test_each_library_has_a_stand_in() -> None:
    assert set(surroundings.stand_ins()) == set(LIBRARIES)


def test_the_path_says_it_to_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["own", str(surroundings.FOLDER / "horovod")]))
    surroundings.put_on_path(real={"horovod"})
    path = os.environ["PYTHONPATH"].split(os.pathsep)
    assert path[-1] == "own"
    assert {Path(folder).name for folder in path[:-1]} == set(LIBRARIES) - {"horovod"}
    assert sys.path[: len(path) - 1] == path[:-1]
    assert os.environ[settings.PACKAGE_PATH].split(os.pathsep)[0] == "compat/as_is/stand_ins/hops"


def test_a_real_library_must_be_known_and_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InvalidInputError, match=r"'horovd' is not one of .* 'horovod'\?.*maggy itself .* not installed"
    ):
        surroundings.checked_real(["horovd", "maggy"])
    (tmp_path / "maggy.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert surroundings.checked_real(["maggy"]) == {"maggy"}
