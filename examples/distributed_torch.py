"""Train one network on two ranks with PyTorch, as for torchrun, and survive the death of one of them.

$ python examples/distributed_torch.py --workers 2
"""

from __future__ import annotations

import argparse
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from cargobike import experiment, trial


def train(lr: float, steps: int, die_at: int | None = None) -> dict[str, float]:
    dist.init_process_group()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    begin = 0
    if (state := trial.checkpoint.load()) is not None:
        model.module.load_state_dict(state["model"])
        begin = state["step"] + 1
    truth = torch.arange(8.0)
    for step in range(begin, steps):
        torch.manual_seed(step * trial.world_size + trial.rank)  # every rank has its own share of the data
        x = torch.rand(64, 8)
        loss = torch.nn.functional.mse_loss(model(x).squeeze(1), x @ truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trial.report(loss=trial.all_reduce(loss), step=step)
        trial.checkpoint.save({"model": model.module.state_dict(), "step": step})  # rank 0 does
        if step == die_at and trial.attempt == 1 and trial.rank == trial.world_size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
    dist.destroy_process_group()
    return {"loss": float(loss.detach()), "begun_at": begin}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--die-at", type=int, default=20)
    options = parser.parse_args()
    run = experiment.allreduce(
        train,
        params={"lr": 0.1, "steps": options.steps, "die_at": options.die_at},
        workers=options.workers,
        metric="loss",
    )
    print(f"loss {run.value:.4f}")
    for reform in run.reforms:
        print(f"attempt {reform.attempt}: {reform.reason.splitlines()[0]}")
        print(f"  cost {reform.lost_s:.2f} s of work and {reform.pause_s:.2f} s until {reform.workers_after} went on")
