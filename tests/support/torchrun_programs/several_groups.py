"""One default group after the other, in each of the ways to make one, with ranks that are never equally fast."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

RANK, WORLD_SIZE = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def by_address() -> None:
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    dist.init_process_group("gloo", init_method=address, rank=RANK, world_size=WORLD_SIZE)


WAYS: list[Callable[[], object]] = [
    lambda: dist.init_process_group("gloo"),
    dist.init_process_group,
    lambda: dist.init_process_group(backend=None, timeout=timedelta(minutes=1)),
    lambda: dist.init_process_group("cpu:gloo", init_method="env://", rank=RANK, world_size=WORLD_SIZE),
    by_address,
    lambda: init_device_mesh("cpu", (WORLD_SIZE,)),
]


def main() -> None:
    for number, make in enumerate(WAYS):
        time.sleep(0.2 if number % WORLD_SIZE == RANK else 0)
        make()
        total = torch.tensor([float(RANK)])
        dist.all_reduce(total)
        assert total.item() == sum(range(WORLD_SIZE))
        everybody, alone = dist.new_group(list(range(WORLD_SIZE))), dist.new_group([0])
        dist.all_reduce(total, group=everybody)
        assert total.item() == WORLD_SIZE * sum(range(WORLD_SIZE))
        if RANK == 0:
            dist.all_reduce(total, group=alone)
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
