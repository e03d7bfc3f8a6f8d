"""Search the hyperparameters of a small PyTorch network that reads handwritten digits.

    python examples/digits.py                     search
    python examples/digits.py --trials 4 --epochs 2
    python examples/digits.py --direct            call the train function once, without Cargobike around it

Needs PyTorch and scikit-learn: pip install "cargobike[demo]".
"""

from __future__ import annotations

import argparse
from functools import partial

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from cargobike import Searchspace, experiment, trial

EPOCHS = 15
BATCH = 64


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return images and labels to train on, then images and labels to score with."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.as_tensor(part) for part in split)
    return train_x.float(), train_y, test_x.float(), test_y


def train(lr: float, hidden: int, dropout: float, epochs: int = EPOCHS) -> float:
    """Train one network and return its accuracy on digits that it has not seen."""
    train_x, train_y, test_x, test_y = digits()
    model = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    first_epoch, accuracy = 0, 0.0

    # Nothing the first time. When a worker is lost on the way, the next attempt goes on from here.
    saved = trial.checkpoint.load()
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first_epoch, accuracy = saved["epoch"] + 1, saved["accuracy"]

    for epoch in range(first_epoch, epochs):
        model.train()
        for batch in torch.randperm(len(train_x)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(train_x[batch]), train_y[batch]).backward()
            optimizer.step()

        model.eval()
        with torch.no_grad():
            accuracy = (model(test_x).argmax(dim=1) == test_y).float().mean().item()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        trial.report(accuracy=accuracy, step=epoch)
        trial.checkpoint.save({**state, "epoch": epoch, "accuracy": accuracy})
    return accuracy


def main() -> None:
    """Search, or call the train function directly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--direct", action="store_true")
    arguments = parser.parse_args()

    if arguments.direct:
        print("accuracy", train(lr=0.01, hidden=32, dropout=0.1, epochs=arguments.epochs))
        return

    space = Searchspace(
        lr=("DOUBLE", [1e-4, 1e-1], "log"),
        hidden=("INTEGER", [8, 128]),
        dropout=("DOUBLE", [0.0, 0.5]),
    )
    result = experiment.launch(
        partial(train, epochs=arguments.epochs),
        space,
        optimizer="random",
        num_trials=arguments.trials,
        workers=arguments.workers,
        direction="max",
        name="digits",
    )
    print(result)
    print(f"look closer: cargobike show {result.id}")


if __name__ == "__main__":
    main()
