"""What each way of communicating sends, and the loss and accuracy it reaches: digits, two ranks on gloo.

    python benchmarks/distributed/communication.py [--epochs 12]

Every row trains the same network from the same weights on the same batches. `sent` is what one rank hands to the
network (payload, before the collective's own algorithm), `smaller` how many times less that is than plain DDP sends.
No times are shown: two ranks on one machine have no network between them.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import cargobike.torch
from cargobike.torch import TopK

SECRET = b"benchmark" * 4
WAYS: dict[str, dict[str, Any]] = {
    "ddp": {},
    "ddp bf16": {"compression": "bf16"},
    "ddp fp16": {"compression": "fp16"},
    "ddp powersgd": {"compression": "powersgd"},
    "ddp topk 5 %": {"compression": TopK(0.05)},
    "ddp topk 1 %": {"compression": TopK(0.01)},
    "local_sgd, every 22": {"strategy": "local_sgd", "sync_every": 22},
    "diloco, every 22": {"strategy": "diloco", "sync_every": 22},
    "diloco, every 88": {"strategy": "diloco", "sync_every": 88},
    "diloco bf16, every 22": {"strategy": "diloco", "sync_every": 22, "compression": "bf16"},
}
SERVER_WAYS: dict[str, dict[str, Any]] = {
    "server": {},
    "server bf16": {"compression": "bf16"},
    "server int8": {"compression": "int8"},
    "server topk 1 %": {"compression": "topk"},
    "server int8, staleness 4": {"compression": "int8", "staleness": 4},
}


def parts() -> tuple[TensorDataset, TensorDataset, nn.Module, torch.optim.Optimizer]:
    x, y = load_digits(return_X_y=True)
    data, labels = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return TensorDataset(data[:1400], labels[:1400]), TensorDataset(data[1400:], labels[1400:]), model, optimizer


def judge(model: nn.Module, train: TensorDataset, test: TensorDataset) -> dict[str, float]:
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(train.tensors[0]), train.tensors[1]).item()
        accuracy = (model(test.tensors[0]).argmax(1) == test.tensors[1]).float().mean().item()
    return {"training loss": round(loss, 4), "test accuracy": round(accuracy, 4)}


def with_gang(name: str, epochs: int) -> dict[str, Any]:
    train, test, model, optimizer = parts()
    run = cargobike.torch.prepare(model, optimizer, DataLoader(train, batch_size=32, shuffle=True), **WAYS[name])
    for _ in range(epochs):
        for x, y in run.loader:
            run.optimizer.zero_grad()
            nn.functional.cross_entropy(run.model(x), y).backward()
            run.optimizer.step()
    run.sync()
    return {"way": name, "sent MB": run.traffic.sent_bytes / 1e6, **judge(run.plain_model, train, test)}


def through_server(name: str, epochs: int, rank: int, address: str) -> dict[str, Any]:
    train, test, model, optimizer = parts()
    cargobike.torch.barrier()
    client = cargobike.torch.parameter_client(
        model, optimizer, servers=[address], secret=SECRET, rank=rank, **SERVER_WAYS[name]
    )
    order = torch.Generator().manual_seed(rank)
    steps = epochs * 22
    for _ in range(steps):
        batch = torch.randint(0, 1400, (32,), generator=order)
        nn.functional.cross_entropy(model(train.tensors[0][batch]), train.tensors[1][batch]).backward()
        client.step()
    cargobike.torch.barrier()
    client.pull()
    counts = client.counts()[0]
    found = {"way": name, "sent MB": client.traffic.sent_bytes / 1e6, **judge(model, train, test)}
    found |= {"mean delay": round(counts.delay_sum / max(1, counts.applied), 2), "dropped": counts.dropped}
    cargobike.torch.barrier()
    client.close()
    return found


def rank_main(epochs: int, folder: str) -> None:
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    rows = [with_gang(name, epochs) for name in WAYS]
    for number, name in enumerate(SERVER_WAYS):
        place = Path(folder, f"address-{number}")
        if rank == 0:
            with cargobike.torch.ParameterServer(SECRET) as server:
                place.write_text(server.address)
                rows.append(through_server(name, epochs, rank, server.address))
        else:
            while not (place.exists() and place.read_text()):
                threading.Event().wait(0.02)
            through_server(name, epochs, rank, place.read_text())
    if rank == 0:
        most = rows[0]["sent MB"]
        for row in rows:
            row["smaller"] = round(most / row["sent MB"], 1)
            row["sent MB"] = round(row["sent MB"], 3)
        Path(folder, "rows.json").write_text(json.dumps(rows))
    cargobike.torch.barrier()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        rank_main(arguments.epochs, arguments.folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        processes = [
            subprocess.Popen([sys.executable, *sys.argv, "--folder", folder], env={**variables, "RANK": str(rank)})
            for rank in range(2)
        ]
        try:
            for process in processes:
                process.wait(timeout=900)
        finally:
            for process in processes:
                process.kill()
        rows = json.loads(Path(folder, "rows.json").read_text())
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    print("| way | sent, MB | smaller | training loss | test accuracy | mean delay | dropped |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        names = ("way", "sent MB", "smaller", "training loss", "test accuracy", "mean delay", "dropped")
        print("| " + " | ".join(str(row.get(name, "")) for name in names) + " |")


if __name__ == "__main__":
    main()
