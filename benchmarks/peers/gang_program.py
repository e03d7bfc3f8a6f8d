"""The program that launchers of gangs are compared by: a DDP training, then all-reduces of several sizes.

    python peers/gang_program.py torchrun STEPS       # starts itself again, under torchrun
    python peers/gang_program.py cargobike STEPS

Both run the same function in two ranks; rank 0 marks its first step and leaves its figures in the folder of the run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from rig.answers import answer, folder, lines, mark
from torch.nn.parallel import DistributedDataParallel

WIDTH, BATCH = 512, 64
MEBIBYTES = (1, 16, 64)


def train(steps: int) -> None:
    """Train, then reduce; both figures are of rank 0."""
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.rand(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))
    began = 0.0
    for step in range(steps + 1):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 0:
            mark("first-step")
            began = time.perf_counter()
    figures = {"steps_per_s": steps / (time.perf_counter() - began)}
    for size in MEBIBYTES:
        figures[f"reduce_{size}"] = bandwidth(size, rounds=max(6, 192 // size))
    if dist.get_rank() == 0:
        with open(os.path.join(folder(), "figures"), "w", encoding="utf-8") as file:
            json.dump(figures, file, separators=(",", ":"))
    dist.barrier()  # and no destroy_process_group: with the model alive it hangs under torchrun, now and then


def bandwidth(mebibytes: int, rounds: int) -> float:
    """Return how many MiB of a tensor are reduced in a second."""
    tensor = torch.ones(mebibytes << 18)
    for _ in range(2):
        dist.all_reduce(tensor)
    dist.barrier()
    began = time.perf_counter()
    for _ in range(rounds):
        dist.all_reduce(tensor)
    return mebibytes * rounds / (time.perf_counter() - began)


def main(task: str, steps: str) -> None:
    """Run it under one launcher, or as one rank of torchrun."""
    if task == "rank":
        train(int(steps))
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun sets it for its ranks
    if task == "torchrun":
        start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        subprocess.run([*start, __file__, "rank", steps], check=True)
    else:
        from cargobike import experiment  # what it costs to import belongs to what is measured

        experiment.allreduce(train, params={"steps": int(steps)}, workers=2, quiet=True)
    answer(**json.loads(lines("figures")[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
