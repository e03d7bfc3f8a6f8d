"""Scripts for hops, as they are, on projects in S3 and HDFS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cargobike import experiment as ours
from cargobike.compat.hops import experiment, hdfs, pandas_helper
from cargobike.core import settings
from support.hops_functions import kept_elsewhere
from support.scripts import environment

SCRIPT = """
from hops import experiment, hdfs, tensorboard
import hops.util as util

def train(lr, units):
    import os
    import pydoop.hdfs as pydoop
    from hops import hdfs
    with pydoop.open(pydoop.path.abspath("Resources/weights.txt"), "rt") as file:
        weight = float(file.read())
    assert hdfs.exists("/Projects/" + hdfs.project_name() + "/Resources/weights.txt")
    assert os.path.isdir(tensorboard.logdir())
    return {"accuracy": weight * lr - units}

if __name__ == "__main__":
    hdfs.dump("2.0", "Resources/weights.txt")
    best_logdir, best_params, outputs = experiment.grid_search(
        train, {"lr": [0.1, 0.5], "units": [1, 2]}, direction="max", optimization_key="accuracy", name="as it is"
    )
    assert best_params == {"lr": 0.5, "units": 1}, best_params
    print("best", outputs["accuracy"])
"""


def test_files_and_experiments_lie_on_the_storage(project_there: str, tmp_path: Path) -> None:
    assert hdfs.project_path() == project_there + "/"
    frame = pd.DataFrame({"x": range(50), "y": range(50)})
    pandas_helper.write_parquet("Resources/t.parquet", frame)
    pandas_helper.write_csv("Resources/t.csv", frame, index=False)
    assert pandas_helper.read_parquet("Resources/t.parquet", columns=["y"]).shape == (50, 1)
    pd.testing.assert_frame_equal(pandas_helper.read_csv("Resources/t.csv"), frame)
    hdfs.mkdir("Logs")
    hdfs.move("Resources/t.csv", "Logs")
    assert hdfs.ls("Logs") == [f"{project_there}/Logs/t.csv"]
    assert hdfs.stat("Logs/t.csv").st_size == len(hdfs.load("Logs/t.csv"))
    (tmp_path / "got").mkdir()
    assert Path(hdfs.copy_to_local("Resources", str(tmp_path / "got"))).name == "Resources"
    assert (tmp_path / "got" / "Resources" / "t.parquet").stat().st_size == hdfs.stat("Resources/t.parquet").st_size
    path, outputs = experiment.launch(kept_elsewhere, versioned_resources=[hdfs.project_path() + "Logs/t.csv"])
    assert path.startswith(project_there)
    assert hdfs.load(outputs["notes"]) == b"far away"
    snapshot = ours.load("last").snapshot
    assert snapshot is not None
    assert [one.name for one in snapshot.resources] == ["t.csv"]


def test_a_script_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "cargobike.compat", "old.py"],
        cwd=tmp_path,
        env={**environment(), settings.PROJECT: str(tmp_path / "team")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "best 0.0"
    assert "hops.experiment.grid_search is called cargobike.experiment.launch here" in done.stderr
