"""Bytes per second through a parameter server, against bare gloo send and receive of the same bytes.

    python benchmarks/distributed/parameter_server_throughput.py [--mib 64] [--rounds 12] [--tcp] [--protection NAME]

One worker, one server, two processes. A round of ours is `client.step()`: push a gradient, apply it (SGD), pull the
parameters. A round of gloo's sends as many bytes to the other process and receives as many back; nothing is computed.
Both run in the same two processes, alternating round by round, so that other load on the machine hits both. With
`--tcp` ours goes by the network, and not past it. `--protection` chooses how frames are sealed: GCM_TAGS as on one
machine, HMAC_TAGS as there without the package cryptography, GCM_ENCRYPTED as between machines. Gloo protects nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

import cargobike.torch
from cargobike.training.wire import connection, lobby
from cargobike.training.wire.sealing import Suite

SECRET = b"benchmark" * 4
WARM_UP = 2


def server(mib: int, rounds: int) -> None:
    numbers = torch.empty(mib << 18)
    with cargobike.torch.ParameterServer(SECRET) as ours:
        store = dist.distributed_c10d._get_default_store()
        store.set(f"address {mib}", ours.address)
        for _ in range(rounds + WARM_UP):
            dist.recv(numbers, src=0)
            dist.send(numbers, dst=0)
            dist.barrier()
        dist.barrier()


class Weights(torch.nn.Module):
    def __init__(self, mib: int) -> None:
        super().__init__()
        self.parts = torch.nn.ParameterList([torch.zeros(mib << 14) for _ in range(16)])


def worker(mib: int, rounds: int, options: dict[str, Any]) -> dict[str, Any]:
    numbers = torch.ones(mib << 18)
    address = dist.distributed_c10d._get_default_store().get(f"address {mib}").decode()
    model = Weights(mib)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    client = cargobike.torch.parameter_client(model, optimizer, servers=[address], secret=SECRET, **options)
    times: dict[str, list[float]] = {"ours": [], "gloo": []}
    for _ in range(rounds + WARM_UP):
        begin = time.perf_counter()
        dist.send(numbers, dst=1)
        dist.recv(numbers, src=1)
        times["gloo"].append(time.perf_counter() - begin)
        dist.barrier()
        begin = time.perf_counter()
        client.step()
        times["ours"].append(time.perf_counter() - begin)
    client.close()
    dist.barrier()
    moved = 2 * (mib << 20)
    ours, gloo = (statistics.median(times[name][WARM_UP:]) for name in ("ours", "gloo"))
    ratios = [g / o for o, g in zip(times["ours"][WARM_UP:], times["gloo"][WARM_UP:], strict=True)]
    return {
        "MiB each way": mib,
        "ours GB/s": round(moved / ours / 1e9, 2),
        "gloo GB/s": round(moved / gloo / 1e9, 2),
        "ratio": round(gloo / ours, 2),
        "ratio of pairs, quartiles": [round(q, 2) for q in statistics.quantiles(ratios, n=4)],
        "ratio of the best rounds": round(min(times["gloo"]) / min(times["ours"]), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, nargs="+", default=[4, 32, 128])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tcp", action="store_true", help="by the network, not past it")
    parser.add_argument(
        "--protection", choices=[suite.name for suite in Suite], help="as the two ends agree if left out"
    )
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))  # as in a gang: each its share of the cores
        if arguments.tcp and os.environ["RANK"] == "0":
            connection._near = lambda address: f"\0nobody listens to {address}"
        if arguments.protection:
            for module in (connection, lobby):
                vars(module)["suites_for"] = lambda _: Suite[arguments.protection]
        for mib in arguments.mib:
            if os.environ["RANK"] == "1":
                server(mib, arguments.rounds)
            else:
                print(json.dumps(worker(mib, arguments.rounds, {})), flush=True)
        os._exit(0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen([sys.executable, *sys.argv], env={**variables, "RANK": str(rank)}) for rank in range(2)
    ]
    try:
        for process in processes:
            process.wait(timeout=600)
    finally:
        for process in processes:
            process.kill()


if __name__ == "__main__":
    main()
