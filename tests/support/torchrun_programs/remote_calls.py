"""RPC beside a process group: a parameter lives in rank 0, the others add to it."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.distributed import rpc


def add(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return left + right


def main() -> str:
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    other = f"worker{(rank + 1) % world_size}"
    total = rpc.rpc_sync(other, add, args=(torch.ones(2), torch.full((2,), float(rank))))
    assert total.tolist() == [1.0 + rank] * 2
    rpc.shutdown()
    dist.destroy_process_group()
    return "done"


if __name__ == "__main__":
    main()
