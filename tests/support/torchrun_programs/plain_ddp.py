"""The usual loop: a group by the environment, a sampler, DDP, a checkpoint by rank 0, an exit code."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@record
def main() -> None:
    dist.init_process_group("gloo")
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(32, 4), torch.rand(32, 1))
    sampler: DistributedSampler[object] = DistributedSampler(data)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    weights = [torch.empty_like(model.module.weight) for _ in range(world_size)]
    dist.all_gather(weights, model.module.weight.detach())
    assert all(torch.equal(weights[0], other) for other in weights)
    if rank == 0:
        torch.save(model.module.state_dict(), "model.pt")
    dist.barrier()
    dist.destroy_process_group()
    sys.exit(0)


if __name__ == "__main__":
    main()
