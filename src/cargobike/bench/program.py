"""The train function of `cargobike bench train`: what each rank runs, and how it measures itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn

import cargobike.torch
from cargobike import trial
from cargobike.bench.cases import SIZES, Size
from cargobike.bench.speeds import speed_of

SHOWN_EVERY = 10
HELD_OUT = 512
MOST_ROWS = 8192
ALONE_STEPS = 20


def train(*, model: str, way: str, steps: int, warmup: int, batch: int, lr: float, sync_every: int) -> dict[str, float]:
    """Train one of the networks on rows that are made up, and tell how fast that went."""
    size = SIZES[model]
    torch.manual_seed(0)  # the same first weights in every way
    network = make_network(size)
    chosen: dict[str, Any] = {"strategy": "ddp"}
    if way == "local-sgd":
        chosen = {"strategy": "local_sgd", "sync_every": sync_every}
    elif way.startswith("ps-"):
        chosen = {"strategy": "parameter_server"}
        lr /= trial.world_size  # servers add gradients up, where all-reduce takes their mean
    run = cargobike.torch.prepare(network, torch.optim.SGD(network.parameters(), lr=lr), **chosen)
    device = run.group.device
    rows, labels = make_rows(size, min(MOST_ROWS, batch * (steps + warmup)), seed=1 + trial.rank, device=device)
    test = make_rows(size, HELD_OUT, seed=0, device=device)
    clock = _clock(device)

    def step_with(one: nn.Module, optimizer: Any, number: int) -> float:
        begin = number * batch % max(1, len(rows) - batch + 1)
        began = clock()
        optimizer.zero_grad()
        nn.functional.cross_entropy(one(rows[begin : begin + batch]), labels[begin : begin + batch]).backward()
        optimizer.step()
        return clock() - began

    alone_s = _step_alone(size, device, lr, min(steps, ALONE_STEPS), step_with)
    for number in range(warmup):
        step_with(run.model, run.optimizer, number)
    sent_before = run.traffic.sent_bytes
    trial.barrier()
    seconds: list[float] = []
    for number in range(steps):
        seconds.append(step_with(run.model, run.optimizer, warmup + number))
        done = number + 1
        if done == 1 or done % SHOWN_EVERY == 0 or done == steps:
            speed = speed_of(seconds, batch * trial.world_size)
            loss = held_out_loss(run.plain_model, *test)
            trial.report(step=done, seconds=sum(seconds), loss=loss, **speed._asdict())
    run.sync()
    mine = speed_of(seconds, batch)
    sent_bytes = (run.traffic.sent_bytes - sent_before) / steps
    found = {
        "images_per_s": trial.all_reduce(mine.mean, "sum"),
        "uncertainty": mine.uncertainty * trial.world_size,
        "jitter": mine.jitter * trial.world_size,
        "step_s": trial.all_reduce(sum(seconds) / steps),
        "alone_s": trial.all_reduce(alone_s),
        "sent_bytes": trial.all_reduce(sent_bytes),
        "loss": held_out_loss(run.plain_model, *test),
    }
    if run.client is not None:
        counts = run.client.counts()
        applied = sum(each.applied for each in counts)
        found["delay"] = sum(each.delay_sum for each in counts) / max(1, applied)
        found["dropped"] = max(each.dropped for each in counts)
    trial.barrier()
    return found


def _step_alone(
    size: Size, device: torch.device, lr: float, steps: int, step_with: Callable[[nn.Module, Any, int], float]
) -> float:
    """Return the mean time of a step without communication, while all other ranks take such steps, too."""
    network = make_network(size).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=lr)
    step_with(network, optimizer, 0)
    trial.barrier()
    seconds = [step_with(network, optimizer, number) for number in range(steps)]
    return sum(seconds) / steps


def make_network(size: Size) -> nn.Module:
    """Return a network of dense layers."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(size.widths):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def make_rows(size: Size, count: int, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows that scatter around the centre of their class, by 1 in every direction, and their classes."""
    centres = torch.randn(size.classes, size.values, generator=torch.Generator().manual_seed(0))
    centres *= size.values**0.25 / centres.norm(dim=1, keepdim=True)  # neither plain to see nor hidden, in any width
    source = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, size.classes, (count,), generator=source)
    rows = torch.randn(count, size.values, generator=source).add_(centres[labels])
    return rows.to(device), labels.to(device)


def held_out_loss(network: nn.Module, rows: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the loss on rows that were never trained on."""
    with torch.no_grad():
        return float(nn.functional.cross_entropy(network(rows), labels))


def _clock(device: torch.device) -> Callable[[], float]:
    """Return a clock that reads when what was asked of the device is done."""
    if device.type != "cuda":
        return time.perf_counter

    def read() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return read
