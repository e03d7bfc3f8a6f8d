"""The code of an experiment, as a driver writes it down."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.facts import OptimizerIdled
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.driving.keeping import CodeKeeper

FILES: dict[str, bytes | None] = {"function.py": b"def train(): ...", "nothing": None, "recipe.json": b'{"version":1}'}


def keeper_in(folder: Path) -> CodeKeeper:
    return CodeKeeper(ExperimentFolder(folder), FILES)


def test_all_files_are_there_after_the_first_facts_and_no_others(tmp_path: Path) -> None:
    keeper = keeper_in(tmp_path)
    keeper.on_facts([OptimizerIdled(at=0.0, told=0)])
    found = {path.name: path.read_bytes() for path in (tmp_path / "code").iterdir()}
    assert found == {name: data for name, data in FILES.items() if data}


def test_a_driver_that_is_killed_meanwhile_leaves_no_half_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def die(path: Path, data: bytes) -> int:
        written.append(path.name)
        with path.open("wb") as file:
            file.write(data[:5])
        if len(written) == 2:
            raise SystemExit("killed")
        return len(data)

    monkeypatch.setattr(Path, "write_bytes", die)
    with pytest.raises(SystemExit):
        keeper_in(tmp_path).on_facts([OptimizerIdled(at=0.0, told=0)])
    assert len(written) == 2
    assert not (tmp_path / "code" / "recipe.json").exists()
