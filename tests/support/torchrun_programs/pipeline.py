"""A model in two stages, one on each rank, fed with micro-batches (`torch.distributed.pipelining`)."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def main() -> None:
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    stage = PipelineStage(torch.nn.Linear(4, 4), rank, world_size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=torch.nn.functional.mse_loss)
    losses: list[torch.Tensor] = []
    if rank == 0:
        schedule.step(torch.rand(8, 4))
    elif rank == world_size - 1:
        schedule.step(target=torch.rand(8, 4), losses=losses)
        assert len(losses) == 2
    else:
        schedule.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
