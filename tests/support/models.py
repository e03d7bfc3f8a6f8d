"""Models as users write them in modules of their own, for tests that save them."""

from __future__ import annotations

from typing import Any

import torch


class Perceptron(torch.nn.Module):
    """Two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layers(points)
        return result


def perceptron(width: int) -> Perceptron:
    """Make one."""
    return Perceptron(width)


class Affine:
    """An object that predicts records."""

    def __init__(self, slope: float, shift: float) -> None:
        self.slope = slope
        self.shift = shift

    def predict(self, rows: list[Any]) -> list[Any]:
        return [{"value": self.slope * row["age"] + self.shift, "town": row["town"]} for row in rows]


class Tied(torch.nn.Module):
    """Words in, words out, through one table of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(5, 4)
        self.out = torch.nn.Linear(4, 5, bias=False)
        self.out.weight = self.table.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(self.table(words).mean(dim=1))
        return result


class TwoInputs(torch.nn.Module):
    """Takes two fields, and returns two."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": x + y.sum(dim=1), "first": y[:, 0]}
