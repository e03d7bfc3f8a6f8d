"""Lightning's Trainer with DDP, `save_hyperparameters` and a checkpoint."""

from __future__ import annotations

import os

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regression(L.LightningModule):
    def __init__(self, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], batch_index: int) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> L.Trainer:
    L.seed_everything(0)
    data = TensorDataset(torch.rand(32, 4), torch.rand(32, 1))
    trainer = L.Trainer(
        accelerator="cpu",
        devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        num_nodes=int(os.environ["GROUP_WORLD_SIZE"]),
        strategy="ddp",
        max_epochs=1,
        enable_progress_bar=False,
        log_every_n_steps=1,
    )
    trainer.fit(Regression(), DataLoader(data, batch_size=4))
    assert trainer.world_size == int(os.environ["WORLD_SIZE"])
    assert trainer.global_step == 4
    return trainer


if __name__ == "__main__":
    main()
