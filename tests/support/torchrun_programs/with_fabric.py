"""Lightning Fabric: a loop of your own with `setup`, `backward` and `all_reduce`."""

from __future__ import annotations

import os

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp")
    fabric.launch()
    fabric.seed_everything(0)
    model = torch.nn.Linear(4, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    loader = fabric.setup_dataloaders(DataLoader(TensorDataset(torch.rand(16, 4), torch.rand(16, 1)), batch_size=4))
    for x, y in loader:
        optimizer.zero_grad()
        fabric.backward(torch.nn.functional.mse_loss(model(x), y))
        optimizer.step()
    total = fabric.all_reduce(torch.tensor(float(fabric.global_rank)), reduce_op="sum")
    assert float(total) == sum(range(fabric.world_size))
    fabric.save("fabric.pt", {"model": model})
    fabric.barrier()


if __name__ == "__main__":
    main()
