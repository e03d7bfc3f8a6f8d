"""Train one model that is split over two processes: each holds half of the layers.

    python examples/pipeline.py

The first rank has the first half and the data, the second rank the second half and the labels. Batches are cut into
micro-batches, so that both halves compute at the same time. All of it is torch's own (torch.distributed.pipelining);
the gang gives the ranks their places.
"""

from __future__ import annotations

from cargobike import experiment, trial

MICRO_BATCHES = 4


def train(lr: float, epochs: int) -> float:
    import torch
    import torch.distributed as dist
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    dist.init_process_group("gloo")
    is_first, is_last = trial.rank == 0, trial.rank == trial.world_size - 1
    halves = [
        lambda: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
        lambda: nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)),
    ]
    mine = halves[trial.rank]()  # the other half is never made here
    stage = PipelineStage(mine, trial.rank, trial.world_size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, MICRO_BATCHES, loss_fn=nn.functional.cross_entropy)
    optimizer = torch.optim.Adam(mine.parameters(), lr=lr)

    data, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(data, dtype=torch.float32) / 16, torch.tensor(labels)
    order = torch.Generator().manual_seed(0)  # the same in both ranks: data and labels must fit
    for epoch in range(epochs):
        losses: list[torch.Tensor] = []
        for batch in torch.randperm(len(x), generator=order)[:1792].split(64):
            optimizer.zero_grad()
            if is_first:
                schedule.step(x[batch])
            elif is_last:
                schedule.step(target=y[batch], losses=losses)
            optimizer.step()
        mean = torch.stack(losses).mean() if is_last else torch.zeros(())
        dist.broadcast(mean, src=trial.world_size - 1)
        trial.report(loss=mean, step=epoch)
    return float(mean)


if __name__ == "__main__":
    run = experiment.allreduce(train, params={"lr": 3e-3, "epochs": 5}, workers=2)
    print(f"loss {run.value:.4f} with a model split over {len(run.values)} processes")
