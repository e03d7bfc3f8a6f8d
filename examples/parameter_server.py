"""Asynchronous SGD: two workers share parameters through two servers and do not wait for each other.

python examples/parameter_server.py
"""

from __future__ import annotations

from cargobike import experiment, trial


def train(lr: float, steps: int) -> dict[str, float]:
    import torch
    from sklearn.datasets import load_digits
    from torch import nn

    import cargobike.torch

    data, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(data, dtype=torch.float32) / 16, torch.tensor(labels)
    mine = torch.arange(trial.rank, 1400, trial.world_size)  # this worker's part of the data
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)  # servers do what it says

    with cargobike.torch.parameter_client(model, optimizer) as client:
        for step in range(steps):
            client.pull()
            batch = mine[torch.randint(0, len(mine), (32,))]
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            client.push()
            if step % 50 == 49:
                trial.report(loss=loss, step=step)
        client.pull()
        with torch.no_grad():
            accuracy = float((model(x[1400:]).argmax(1) == y[1400:]).float().mean())
        return {"accuracy": accuracy, "dropped": client.dropped, "compressed": client.traffic.ratio}


if __name__ == "__main__":
    run = experiment.parameter_server(
        train,
        params={"lr": 0.1, "steps": 200},
        workers=2,
        servers=2,
        metric="accuracy",
        staleness=8,
        compression="int8",
    )
    print(f"accuracy {run.value:.3f}, by worker {run.values}")
