"""Processes that the program starts itself, with an address of their own, as torch's tutorial of DDP does."""

from __future__ import annotations

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def demo(rank: int, world_size: int, port: int) -> None:
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    model(torch.ones(2, 4)).sum().backward()
    total = torch.tensor(rank + 1.0)
    dist.all_reduce(total)
    assert total.item() == 3.0
    dist.destroy_process_group()


def main() -> None:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    mp.spawn(demo, args=(2, port), nprocs=2, join=True)


if __name__ == "__main__":
    main()
