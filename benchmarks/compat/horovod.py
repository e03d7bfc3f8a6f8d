"""Programs for Horovod beside what they could use instead: steps of DDP, reductions of bare gloo. Two ranks.

    python benchmarks/compat/horovod.py [--seconds 2] [--rounds 5]

Everybody takes turns in the same two processes, for a short while each, again and again; what counts is the median of
the ratios of neighbouring turns, because other work on the machine slows both. `allreduce_` works in place, as gloo
does; `allreduce` is compared with gloo on a copy, which is what it gives; both divide by the number of ranks.
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
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cargobike.compat.horovod.torch as hvd

MIB = (1, 16, 64)


def reductions(mib: int) -> dict[str, Callable[[], Any]]:
    """Return ways to average a tensor of so many MiB."""
    tensor = torch.ones(mib * (1 << 18))

    def gloo() -> None:
        dist.all_reduce(tensor)
        tensor.div_(2)

    def gloo_on_copy() -> None:
        copy = tensor.clone()
        dist.all_reduce(copy)
        copy.div_(2)

    return {
        "gloo": gloo,
        "allreduce_": lambda: hvd.allreduce_(tensor, name="bench"),
        "gloo on a copy": gloo_on_copy,
        "allreduce": lambda: hvd.allreduce(tensor, name="bench"),
    }


def training() -> dict[str, Callable[[], Any]]:
    """Return ways to take a step: the same network of 3.3 million parameters in each."""
    x, y = torch.randn(64, 512), torch.randint(0, 10, (64,))

    def network() -> nn.Module:
        torch.manual_seed(0)
        layers = [nn.Linear(512, 1024), nn.ReLU()]
        for _ in range(2):
            layers += [nn.Linear(1024, 1024), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(1024, 10))

    replicated = DistributedDataParallel(network())
    plain = torch.optim.SGD(replicated.parameters(), lr=0.01)
    own = network()
    distributed = hvd.DistributedOptimizer(torch.optim.SGD(own.parameters(), lr=0.01), own.named_parameters())

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return {"DDP": lambda: step(replicated, plain), "DistributedOptimizer": lambda: step(own, distributed)}


def turns(ways: dict[str, Callable[[], Any]], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Return calls per second of each way in each of its turns."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    count = dict.fromkeys(ways, 1)
    for name, call in ways.items():
        call()
        began = time.perf_counter()
        for _ in range(3):
            call()
        # All ranks must call equally often: rank 0 says how often.
        once = torch.tensor([(time.perf_counter() - began) / 3])
        dist.broadcast(once, 0)
        count[name] = max(1, int(seconds / rounds / max(once.item(), 1e-5)))
    for turn in range(rounds):
        for name in sorted(ways, reverse=bool(turn % 2)):
            dist.barrier()
            began = time.perf_counter()
            for _ in range(count[name]):
                ways[name]()
            rates[name].append(count[name] / (time.perf_counter() - began))
    return rates


def be_rank(seconds: float, rounds: int) -> None:
    """Take part; rank 0 prints."""
    torch.set_num_threads(1)
    hvd.init()
    dist.init_process_group("gloo")
    cases = [(f"{mib} MiB", turns(reductions(mib), seconds, rounds)) for mib in MIB]
    cases.append(("step", turns(training(), seconds, rounds)))
    if hvd.rank() == 0:
        for label, rates in cases:
            pairs = [("gloo", "allreduce_"), ("gloo on a copy", "allreduce"), ("DDP", "DistributedOptimizer")]
            for other, ours in pairs:
                if ours in rates:
                    ratios = [a / b for a, b in zip(rates[ours], rates[other], strict=True)]
                    print(
                        f"{label:>7}  {ours:22} {statistics.median(rates[ours]):9.1f}/s  {other:15} "
                        f"{statistics.median(rates[other]):9.1f}/s  ratio {statistics.median(ratios):.2f} "
                        f"({min(ratios):.2f}-{max(ratios):.2f})"
                    )
        print(json.dumps(dict(cases)), file=sys.stderr)
    dist.barrier()
    hvd.shutdown()
    dist.destroy_process_group()


def main() -> None:
    """Start two ranks of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if "RANK" in os.environ:
        be_rank(options.seconds, options.rounds)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **common, "RANK": str(rank)})
        for rank in range(2)
    ]
    codes = [rank.wait() for rank in ranks]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
