"""A project on real storage servers: trials are fed from there, lose no row, and predictions go there."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike import data, experiment, trial
from support.watching import ancestors

ROWS = 500


def _train(into: str, data: Any) -> float:
    seen: list[int] = trial.checkpoint.load([])
    for batch in data:
        seen += batch["id"].tolist()
        trial.checkpoint.save(seen)
        if trial.attempt == 1 and len(seen) >= ROWS // 2:
            os.kill(ancestors(2)[-1], signal.SIGKILL)
            time.sleep(60)
    Path(into).write_text(" ".join(map(str, seen)))
    return float(len(seen))


@pytest.mark.parametrize("given", ["loader", "address", "frame"])
def test_a_trial_is_fed_from_the_storage_and_loses_no_row(project_url: str, tmp_path: Path, given: str) -> None:
    rows = {"id": np.arange(ROWS), "x": np.arange(ROWS) / 2}
    table = data.write(rows, "rows")
    loader: Any = data.Loader("rows", batch_size=32, shuffle=True, seed=4)
    source = {"loader": loader, "address": f"{table.url}/{table.files[0].path}", "frame": pd.DataFrame(rows)}[given]
    into = tmp_path / "seen"
    result = experiment.launch(_train, params={"into": str(into)}, data=source, quiet=True)
    assert result.trials[0].attempts == 2
    assert sorted(map(int, into.read_text().split())) == list(range(ROWS))
    assert not [*(tmp_path / "here").rglob("*.parquet")], "rows are read in place"


def test_predictions_go_to_the_storage(project_url: str, tmp_path: Path) -> None:
    data.write({"id": np.arange(ROWS)}, "rows")
    table = experiment.inference(lambda rows: rows["id"] + 1, "rows", output_to="later", workers=1, quiet=True)
    assert table.url == f"{project_url}/data/later"
    assert table.read()["prediction"].to_pylist() == list(range(1, ROWS + 1))
    assert not [*(tmp_path / "here").rglob(".predicting-*")]
