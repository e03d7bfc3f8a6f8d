"""The training that launchers are compared by: the same function under each of them, which writes down its own times.

torchrun --standalone --nproc-per-node 2 ddp_program.py torchrun FOLDER STEPS [DIE_AT]
python ddp_program.py cargobike FOLDER STEPS [DIE_AT]
python ddp_program.py torchdistributor FOLDER STEPS
python ddp_program.py ray FOLDER STEPS        # by an interpreter that has Ray Train, and nothing of ours
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WIDTH, BATCH = 512, 64


def train(folder: str, steps: int, die_at: int = -1) -> float:
    """Train, and leave the time of every step in a file for each attempt; returns steps per second after the first."""
    if not dist.is_initialized():  # Ray Train has done it
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(),
            torch.nn.Linear(WIDTH, 10),
        )
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.rand(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))
    saved = Path(folder, "step")
    begin = int(saved.read_text()) if saved.exists() else 0
    times: list[float] = []
    processor = 0.0
    for step in range(begin, steps):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.time())
        processor = time.process_time() if len(times) == 1 else processor
        if step == begin and dist.get_rank() == 0:
            Path(folder, f"first-{begin}").write_text(repr(times[0]))
        if step == die_at and begin == 0:
            if dist.get_rank() == 0:
                saved.write_text(str(step + 1))
            dist.barrier()
            if dist.get_rank() == 1:
                Path(folder, "killed").write_text(repr(time.time()))
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
    speed = (len(times) - 1) / (times[-1] - times[0])
    if dist.get_rank() == 0:
        Path(folder, "processor").write_text(repr((time.process_time() - processor) / (len(times) - 1)))
        Path(folder, "speed").write_text(repr(speed))
    dist.barrier()  # and no destroy_process_group: with the model alive it hangs under torchrun, now and then
    return speed


def main(launcher: str, folder: str, steps: str, die_at: str = "-1") -> None:
    """Run it under one launcher."""
    if launcher == "torchrun":
        train(folder, int(steps), int(die_at))
    elif launcher == "cargobike":
        from cargobike import experiment

        params = {"folder": folder, "steps": int(steps), "die_at": int(die_at)}
        experiment.allreduce(train, params=params, workers=2, quiet=True)
    elif launcher == "ray":
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        TorchTrainer(
            lambda: train(folder, int(steps)),
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(storage_path=str(Path(folder, "ray"))),
        ).fit()
    else:
        from pyspark.ml.torch.distributor import TorchDistributor
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        TorchDistributor(num_processes=2, local_mode=True, use_gpu=False).run(train, folder, int(steps))
        session.stop()
    Path(folder, "ended").write_text(json.dumps(time.time()))


if __name__ == "__main__":
    main(*sys.argv[1:])
