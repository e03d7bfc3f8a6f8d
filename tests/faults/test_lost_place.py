"""Ranks, workers and drivers are killed in the middle of an epoch: no row of the data is lost, and none is seen twice.

The train functions keep the ids of the rows that they have seen in their checkpoints, and nothing about the loader.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import cargobike.torch
from cargobike import experiment, trial
from cargobike.data.loading.loader import Loader
from cargobike.engines.engine import WorkerSpec
from cargobike.engines.local.engine import LocalEngine, LocalHandle
from support.watching import Script, ancestors

ROWS = 203
EPOCHS = 2
ALL_ROWS = {str(epoch): Counter(range(ROWS)) for epoch in range(EPOCHS)}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": np.arange(ROWS), "x": np.arange(ROWS) / ROWS}), path, row_group_size=20)
    return str(path)


def _train(how: str, into: str, data: Any) -> float:
    """Keep what all ranks have seen; once, some batches into the second epoch, a member of the gang is killed."""
    here = trial.current()
    state = trial.checkpoint.load() if how != "only rank 0 loads" or trial.rank == 0 else None
    if how == "only rank 0 loads":  # and tells the others, as with weights
        state, begin = json.loads(
            here.gang.exchange("state", json.dumps([state, data.epoch]).encode(), of="workers")[0]
        )
    else:
        begin = data.epoch
    seen: dict[str, list[int]] = state["seen"] if state else {str(epoch): [] for epoch in range(EPOCHS)}
    sizes: list[int] = state["sizes"] if state else []
    for epoch in range(begin, EPOCHS):
        for step, batch in enumerate(data):
            own = json.dumps([epoch, batch["id"].tolist()]).encode()
            for part in here.gang.exchange(here.gang.numbered("seen"), own, of="workers"):
                where, ids = json.loads(part)
                assert where == epoch
                seen[str(epoch)] += ids
            if step % 2 == 0:  # what is drawn after the last checkpoint counts for nothing
                trial.checkpoint.save({"seen": seen, "sizes": [*sizes, trial.world_size]})
            trial.barrier()
            if trial.attempt == 1 and (epoch, step) == (1, 3) and trial.rank == trial.world_size - 1:
                os.kill(ancestors(2)[-1] if how == "agent" else os.getpid(), signal.SIGKILL)
        sizes.append(trial.world_size)
    if trial.rank == 0:
        Path(into).write_text(json.dumps(seen))
    return 0.0


def _seen(path: Path) -> dict[str, Counter[int]]:
    """Return how often each row was seen in each epoch."""
    return {epoch: Counter(ids) for epoch, ids in json.loads(path.read_text()).items()}


@pytest.mark.parametrize("how", ["rank", "agent", "only rank 0 loads"])
def test_a_gang_sees_every_row_once_when_one_of_it_is_killed(table: str, tmp_path: Path, how: str) -> None:
    data = Loader(table, batch_size=7, shuffle=True, seed=5)
    result = experiment.allreduce(
        _train, params={"how": how, "into": str(tmp_path / "seen")}, data=data, workers=2, quiet=True
    )
    assert result.trials[0].attempts == 2
    assert _seen(tmp_path / "seen") == ALL_ROWS


class ShrinkingEngine(LocalEngine):
    """Starts three workers; those that are to replace them are never born, since the process is stopped that forks."""

    started = 0

    def start_worker(self, spec: WorkerSpec) -> LocalHandle:
        self.started += 1
        if self.started > 3:
            assert self._host is not None
            os.kill(self._host.process._pid, signal.SIGSTOP)
        return super().start_worker(spec)


@pytest.mark.parametrize("shuffle", [True, False])
def test_three_ranks_become_two_in_the_middle_of_an_epoch(table: str, tmp_path: Path, shuffle: bool) -> None:
    data = Loader(table, batch_size=7, shuffle=shuffle)
    result = experiment.allreduce(
        _train,
        params={"how": "agent", "into": str(tmp_path / "seen")},
        data=data,
        workers=(2, 3),
        engine=ShrinkingEngine(cores=3),
        quiet=True,
    )
    assert [len(attempt.workers) for attempt in result._record.attempts[0]] == [3, 2]
    assert _seen(tmp_path / "seen") == ALL_ROWS


def test_what_is_given_in_memory_has_a_place_too(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(3000)})
    into = tmp_path / "seen"

    def train(data: Any) -> float:
        seen: list[int] = trial.checkpoint.load([])
        for batch in data:
            seen += batch["id"].tolist()
            trial.checkpoint.save(seen)
            if trial.attempt == 1 and len(seen) == 2048:
                os.kill(ancestors(2)[-1], signal.SIGKILL)
                time.sleep(60)
        into.write_text(json.dumps(seen))
        return 0.0

    result = experiment.launch(train, params={}, data=table, quiet=True)
    assert result.trials[0].attempts == 2
    assert json.loads(into.read_text()) == list(range(3000))


DRIVER = """
    import json
    import time
    from pathlib import Path
    from cargobike import experiment, trial
    from cargobike.data.loading.loader import Loader

    def train(data):
        seen = trial.checkpoint.load([])
        for epoch in range(data.epoch, 2):
            data.set_epoch(epoch)
            for step, batch in enumerate(data):
                seen.append([epoch, batch["id"].tolist()])
                trial.checkpoint.save(seen)
                if trial.attempt == 1 and (epoch, step) == (1, 4):
                    Path(FOLDER, "here").touch()
                    time.sleep(600)
        Path(FOLDER, "seen").write_text(json.dumps(seen))
        return 0.0

    FOLDER = str(Path.cwd())
    if __name__ == "__main__":
        data = Loader(TABLE, batch_size=7, shuffle=True, seed=9)
        experiment.launch(train, params={}, data=data, quiet=True)
"""


def test_a_driver_is_killed_and_the_experiment_resumed(table: str, tmp_path: Path) -> None:
    script = Script(tmp_path / "work", DRIVER.replace("TABLE", repr(table)))
    script.wait_for_file("here")
    os.kill(script.process.pid, signal.SIGKILL)
    script.end()
    result = experiment.resume("last", quiet=True)
    assert result.trials[0].attempts == 2
    epochs = {str(epoch): Counter[int]() for epoch in range(EPOCHS)}
    for epoch, ids in json.loads((tmp_path / "work" / "seen").read_text()):
        epochs[str(epoch)].update(ids)
    assert epochs == ALL_ROWS


def _train_with_torch(into: str, data: Any) -> float:
    model = torch.nn.Linear(1, 1)
    run = cargobike.torch.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), data)
    state = trial.checkpoint.load()
    seen: dict[str, list[int]] = {str(epoch): [] for epoch in range(EPOCHS)}
    if state is not None:
        seen = state["seen"]
        run.load(state["run"])
    here = trial.current()
    for epoch in range(run.loader.epoch, EPOCHS):
        for step, batch in enumerate(run.loader, start=run.loader.position):
            run.optimizer.zero_grad()
            run.model(batch["x"].float().view(-1, 1)).square().mean().backward()
            run.optimizer.step()
            own = json.dumps(batch["id"].tolist()).encode()
            for ids in here.gang.exchange(here.gang.numbered("seen"), own, of="workers"):
                seen[str(epoch)] += json.loads(ids)
            trial.checkpoint.save({"run": run.state(), "seen": seen})
            trial.barrier()
            if trial.attempt == 1 and (epoch, step) == (1, 3) and trial.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
    if trial.rank == 0:
        Path(into).write_text(json.dumps(seen))
    return 0.0


def test_a_prepared_loop_sees_every_row_once(table: str, tmp_path: Path) -> None:
    data = Loader(table, batch_size=7, shuffle=True, to="torch")
    params = {"into": str(tmp_path / "seen")}
    result = experiment.allreduce(_train_with_torch, params=params, data=data, workers=2, quiet=True)
    assert result.trials[0].attempts == 2
    assert _seen(tmp_path / "seen") == ALL_ROWS
