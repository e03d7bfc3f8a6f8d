"""Processes that predict are killed: what is finished is kept and not computed again, and no row is lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike import data, experiment
from cargobike.core.errors import EngineError
from cargobike.data.inferring import front
from support.watching import Script, ancestors, marked, wait_for

ROWS = 1000


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": np.arange(ROWS)}), path, row_group_size=100)
    return str(path)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "PIECE_ROWS", 100)


def left_in(project: Path) -> list[str]:
    return [path.name for path in project.rglob(".predicting-*")]


@pytest.mark.parametrize("who", ["process", "agent"])
def test_a_piece_whose_process_is_killed_is_predicted_by_another(parquet: str, tmp_path: Path, who: str) -> None:
    flag = tmp_path / "killed"

    def predict(rows: Any) -> Any:
        if (rows["id"] == 450).any() and not flag.exists():
            flag.touch()
            os.kill(os.getpid() if who == "process" else ancestors(2)[-1], signal.SIGKILL)
            time.sleep(60)
        return rows["id"] + 1

    table = experiment.inference(predict, parquet, workers=2, quiet=True)
    assert flag.exists()
    assert table.read()["prediction"].to_pylist() == list(range(1, ROWS + 1))
    assert left_in(tmp_path) == []


def test_a_row_that_kills_every_process_is_named(parquet: str, tmp_path: Path) -> None:
    def predict(rows: Any) -> Any:
        if (rows["id"] == 450).any():
            print("here it comes", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return rows["id"]

    with pytest.raises(EngineError, match=r"(?s)rows from 400 on was ended by SIGKILL, 3 times.*here it comes"):
        experiment.inference(predict, parquet, workers=1, quiet=True)
    assert len(left_in(tmp_path)) == 1


def test_a_predict_that_hangs_is_ended_and_named(parquet: str) -> None:
    def predict(rows: Any) -> Any:
        if (rows["id"] == 0).any():
            time.sleep(600)
        return rows["id"]

    with pytest.raises(EngineError, match=r"rows from 0 on took longer than timeout_s allows, 3 times"):
        experiment.inference(predict, parquet, workers=1, timeout_s=0.3, quiet=True)


SCRIPT = """
    import time
    from pathlib import Path
    from cargobike import experiment
    from cargobike.data.inferring import front

    front.PIECE_ROWS = 100

    class Slow:
        def __init__(self):
            self.offset = 7

        def __call__(self, rows):
            first = int(rows["id"].iloc[0])
            with open(FOLDER + "/computed", "a") as file:
                file.write(f"{first}\\n")
            if first == 600 and not Path(FOLDER, "go").exists():
                Path(FOLDER, "here").touch()
                time.sleep(600)
            return rows["id"] + self.offset

    FOLDER = str(Path.cwd())
    if __name__ == "__main__":
        experiment.inference(Slow, TABLE, output_to="slow", workers=1)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_call_goes_on_where_it_was(parquet: str, tmp_path: Path, number: signal.Signals) -> None:
    work = tmp_path / "work"
    text = SCRIPT.replace("TABLE", repr(parquet))
    script = Script(work, text)
    script.wait_for_file("here")
    script.process.send_signal(number)
    assert script.end() != 0
    wait_for(lambda: not marked(tmp_path), "the end of the workers")
    (work / "go").touch()
    again = Script(work, text)
    assert again.end() == 0, again.output
    computed = [int(line) for line in (work / "computed").read_text().split()]
    assert computed == [0, 100, 200, 300, 400, 500, 600, 600, 700, 800, 900], "only what was not finished, once more"
    assert "600 of 1,000 rows were predicted by an earlier call" in again.output
    assert data.open("slow").read()["prediction"].to_pylist() == list(range(7, ROWS + 7))
    assert left_in(tmp_path) == []
