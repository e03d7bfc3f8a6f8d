"""The train function of the demo: a small network that learns to read handwritten digits."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from cargobike import trial

BATCH = 32


def train(lr: float, hidden: int, dropout: float, activation: str, epochs: int = 12) -> float:
    """Train on three quarters of the digits and return the accuracy on the rest."""
    torch.manual_seed(trial.seed)
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16.0, labels, test_size=0.25, random_state=0, stratify=labels)
    x, x_test = (torch.tensor(part, dtype=torch.float32) for part in parts[:2])
    y, y_test = (torch.tensor(part) for part in parts[2:])
    model = nn.Sequential(
        nn.Linear(64, hidden),
        nn.GELU() if activation == "gelu" else nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    accuracy = 0.0
    for epoch in range(epochs):
        model.train()
        for chosen in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: accuracy {accuracy:.3f}")
        trial.report(accuracy=accuracy, step=epoch)
    return accuracy
