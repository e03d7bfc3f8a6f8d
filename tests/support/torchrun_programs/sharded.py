"""FSDP2 over a device mesh, saved and loaded by `torch.distributed.checkpoint`."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def build() -> torch.nn.Module:
    mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    return fully_shard(model, mesh=mesh)


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.rand(4, 8)).square().mean().backward()
        optimizer.step()
    dcp.save({"model": get_model_state_dict(model)}, checkpoint_id="checkpoint")
    again = build()
    state = {"model": get_model_state_dict(again)}
    dcp.load(state, checkpoint_id="checkpoint")
    set_model_state_dict(again, state["model"])
    x = torch.rand(4, 8)
    assert torch.equal(model(x), again(x))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
