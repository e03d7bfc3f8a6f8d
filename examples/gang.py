"""Train digits with a gang of two: a plain loop, made distributed by one call.

    python examples/gang.py                      # DDP
    python examples/gang.py --strategy diloco    # or fsdp, zero1, local_sgd

Called directly, outside an experiment, the same function trains alone.
"""

from __future__ import annotations

import argparse

from cargobike import experiment, trial


def train(strategy: str, epochs: int) -> dict[str, float]:
    import torch
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    import cargobike.torch

    data, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(data, dtype=torch.float32) / 16, torch.tensor(labels)
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)

    run = cargobike.torch.prepare(model, optimizer, loader, strategy=strategy)
    model, optimizer, loader = run

    for epoch in range(epochs):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        run.sync()  # local SGD and DiLoCo come together before the model is judged
        model.eval()
        with torch.no_grad():
            mine = slice(1400 + trial.rank, None, trial.world_size)
            hits = (model(x[mine]).argmax(1) == y[mine]).float()
        model.train()
        accuracy = cargobike.torch.all_reduce(hits.mean().item(), weight=len(hits))
        trial.report(accuracy=accuracy, step=epoch)
    return {"accuracy": accuracy, "megabytes_sent": run.traffic.sent_bytes / 1e6}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    run = experiment.allreduce(train, params=vars(arguments), workers=2, metric="accuracy")
    print(f"accuracy {run.value:.3f}")
