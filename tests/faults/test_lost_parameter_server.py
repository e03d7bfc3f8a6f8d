"""A parameter server of an experiment is killed: the next attempt goes on from what the server had saved."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest
import torch
from torch import nn

import cargobike.torch
from cargobike import experiment, trial
from cargobike.experiments.trial import context
from cargobike.training.parameter_server.shard_file import load_shard

DEADLINE_S = 60


def train() -> dict[str, float]:
    model = nn.Linear(4, 1)
    with cargobike.torch.parameter_client(model, torch.optim.SGD(model.parameters(), lr=0.01)) as client:
        began = client.counts()[0]
        for _ in range(20):
            client.pull()
            model(torch.ones(2, 4)).square().mean().backward()
            client.push()
        if trial.attempt == 1:
            kill_the_server(context.current().folder / "servers" / "0" / "shard.bin")
            for _ in range(DEADLINE_S):
                client.pull()  # fails, or the gang ends this process: the attempt is over
                signal.sigtimedwait([], 1)
        return {"attempt": trial.attempt, "began_at": began.version, "restored": began.restored}


def kill_the_server(saved: Path) -> None:
    for _ in range(DEADLINE_S * 10):
        shard = load_shard(saved)
        if shard is not None and shard.version == 20:
            break
        signal.sigtimedwait([], 0.1)
    (address,) = context.current().gang.gather("ps-address", of="servers")
    port = int(address.decode().rpartition(":")[2])
    for connection in psutil.net_connections("tcp"):
        if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
            assert connection.pid is not None
            psutil.Process(connection.pid).kill()
            return
    pytest.fail("nobody listens where the server said it does")


def test_the_next_attempt_goes_on_from_what_the_server_saved() -> None:
    result = experiment.parameter_server(
        train, workers=1, servers=1, metric="began_at", checkpoint_every_s=0.1, quiet=True
    )
    (found,) = result.values
    assert found["attempt"] == 2
    assert found["restored"] == 1
    assert found["began_at"] == 20
