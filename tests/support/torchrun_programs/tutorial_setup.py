"""The tutorial's `setup` and `cleanup`: an address of its own."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def setup(rank: int, world_size: int) -> None:
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup() -> None:
    dist.destroy_process_group()


def main() -> None:
    setup(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    model = DistributedDataParallel(torch.nn.Linear(10, 5))
    model(torch.randn(20, 10)).sum().backward()
    cleanup()


if __name__ == "__main__":
    main()
