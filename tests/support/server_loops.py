"""What the tests run in processes of their own: servers that die and come back, workers that train through them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import torch
from torch import nn

import cargobike.torch
from support.digit_loops import accuracy, digits, network
from support.watching import wait_for

SECRET = b"0123456789abcdef" * 2


def run_server(port: int, checkpoint: str | None, done: str, dies_at: int | None = None, workers: int = 0) -> int:
    """Serve until a file appears; the first life ends with kill -9 as soon as a version was saved and all have come."""
    if dies_at is not None:
        child = os.fork()
        if child == 0:
            path = Path(checkpoint) if checkpoint else None
            server = cargobike.torch.ParameterServer(SECRET, port=port, checkpoint=path, checkpoint_every_s=0.05)
            server.start()
            needed = [Path(f"{done}.here.{rank}") for rank in range(workers)] + ([path] if path else [])
            while server.shard is None or server.shard.version < dies_at or not all(map(Path.exists, needed)):
                signal.sigtimedwait([], 0.005)
            os.kill(os.getpid(), signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
        Path(f"{done}.died").touch()
    path = Path(checkpoint) if checkpoint else None
    with cargobike.torch.ParameterServer(SECRET, port=port, checkpoint=path) as server:
        while not Path(done).exists():
            signal.sigtimedwait([], 0.02)
        assert server.shard is not None
        return server.shard.numbers.restored


def train_through_servers(
    rank: int, workers: int, addresses: list[str], steps: int, done: str, *, outlives: bool = False, **options: Any
) -> dict[str, Any]:
    """Train digits on this worker's half of the data; worker 0 announces the end.

    With `outlives` the second half begins when the first life of the server is over, however fast this worker is.
    """
    train, test = digits()
    x, y = (tensor[rank::workers] for tensor in train.tensors)
    model = network(seed=rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    generator = torch.Generator().manual_seed(rank)
    with cargobike.torch.parameter_client(
        model, optimizer, servers=addresses, secret=SECRET, rank=rank, timeout_s=200, **options
    ) as client:
        for step in range(steps):
            if outlives and step == steps // 2:
                wait_for(Path(f"{done}.died").exists, "the end of the server's first life")
            client.pull()
            batch = torch.randint(0, len(x), (64,), generator=generator)
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            client.push()
            if step == 0:
                Path(f"{done}.here.{rank}").touch()
        Path(f"{done}.{rank}").touch()
        while not all(Path(f"{done}.{other}").exists() for other in range(workers)):
            signal.sigtimedwait([], 0.02)
        client.pull()
        counts = client.counts()
        found = {
            "accuracy": accuracy(model, test),
            "applied": client.applied,
            "dropped": client.dropped,
            "reconnects": client.reconnects,
            "versions": [count.version for count in counts],
            "restored": [count.restored for count in counts],
            "ratio": client.traffic.ratio,
        }
        Path(f"{done}.seen.{rank}").touch()
        while rank == 0 and not all(Path(f"{done}.seen.{other}").exists() for other in range(workers)):
            signal.sigtimedwait([], 0.02)
    if rank == 0:
        Path(done).touch()
    return found
