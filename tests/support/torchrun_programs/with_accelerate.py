"""Hugging Face Accelerate: `prepare`, `backward`, `gather_for_metrics`, `save_state`."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def main() -> dict[str, float | str]:
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(30, 4), torch.rand(30, 1))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=4))
    losses, seen = [], 0
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        gathered = accelerator.gather_for_metrics(y)
        seen += len(gathered)
        losses.append(loss.item())
    assert seen == 30
    accelerator.save_state("state")
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return {"loss": sum(losses) / len(losses), "saved": "state"}


if __name__ == "__main__":
    main()
