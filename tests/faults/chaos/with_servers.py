"""A train function whose ranks share parameters through a server, in a file of its own: workers load its libraries."""

from __future__ import annotations

from collections.abc import Callable

Returned = float | dict[str, float]


def with_a_server(perform: Callable[[float, int], Returned]) -> Callable[[float, int], Returned]:
    """Return a train function that updates a small model before it performs its script."""

    def train(x: float, y: int) -> Returned:
        import torch

        import cargobike.torch

        model = torch.nn.Linear(2, 1)
        with cargobike.torch.parameter_client(model, torch.optim.SGD(model.parameters(), lr=0.01)) as client:
            client.pull()
            model(torch.ones(2, 2)).square().mean().backward()
            client.push()
            return perform(x, y)

    return train
