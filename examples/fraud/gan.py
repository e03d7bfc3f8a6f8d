"""A one-class GAN, trained by a gang: it sees honest payments only, and its critic becomes the detector.

A generator invents payments, and a critic tells real ones from invented ones. The noise that the generator is given is
wider than the noise that it is taught with, so that the critic also meets payments from the outskirts of what is
usual; and some are real ones of which a few signals were taken from other payments: each usual alone, but not together.
So the critic learns where honesty ends. Ranks hold a share of the payments each, and average their gradients.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from scoring import Critic, Detector, Scale, average_precision, signals_of, weights_of
from signals import SIGNALS
from torch import nn

from cargobike import Searchspace, features, trial

BATCH = 512
STEPS = 250
"""How many steps an epoch has, however many payments there are: few payments are to be learned as well as many."""
METRIC = "average_precision"

SPACE = Searchspace(
    generator_lr=("DOUBLE", [1e-4, 5e-3], "log"),
    critic_lr=("DOUBLE", [1e-4, 5e-3], "log"),
    layers=("INTEGER", [1, 3]),
    width=("DISCRETE", [32, 64, 128]),
    noise=("DISCRETE", [4, 8, 16]),
    spread=("DOUBLE", [1.0, 6.0]),
    mixed=("DOUBLE", [0.0, 0.9]),
    swapped=("DOUBLE", [0.1, 0.6]),
    critic_steps=("INTEGER", [1, 4]),
    optimizer=("CATEGORICAL", ["adam", "rmsprop"]),
)
"""GANs are sensitive to all of these."""


@dataclass(frozen=True)
class Fakes:
    """What the critic has to tell from real payments.

    Attributes:
        spread: How much wider the noise is than that which the generator learns with.
        mixed: The share of real payments among them that others were mixed into.
        swapped: The share of signals of such a payment that come from others.
    """

    spread: float
    mixed: float
    swapped: float

    def make(self, generator: nn.Sequential, real: torch.Tensor, noise: int) -> torch.Tensor:
        """Return as many as there are real ones."""
        count = int(self.mixed * len(real))
        others = real.gather(0, torch.rand(len(real), real.shape[1]).argsort(0))
        mixed = torch.where(torch.rand_like(real) < self.swapped, others, real)[:count]
        return torch.cat([mixed, generator(self.spread * torch.randn(len(real) - count, noise))])


@dataclass
class Pair:
    """Generator and critic, each with its optimizer."""

    generator: nn.Sequential
    critic: nn.Sequential
    generator_optimizer: Any
    critic_optimizer: Any

    def state(self) -> dict[str, Any]:
        """Return everything that goes on in another attempt."""
        return {name: part.state_dict() for name, part in vars(self).items()}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where another attempt was."""
        for name, part in vars(self).items():
            part.load_state_dict(state[name])


def train(
    data: Any,
    held_out: str,
    *,
    generator_lr: float = 1e-3,
    critic_lr: float = 1e-3,
    layers: int = 2,
    width: int = 64,
    noise: int = 8,
    spread: float = 2.0,
    mixed: float = 0.6,
    swapped: float = 0.3,
    critic_steps: int = 2,
    optimizer: str = "adam",
    epochs: int = 9,
) -> dict[str, float]:
    """Train one GAN with all ranks, and return how well its critic finds the fraud in the part `tune` of a dataset."""
    torch.set_num_threads(1)
    if trial.is_distributed:
        dist.init_process_group("gloo")
    torch.manual_seed(trial.seed)  # the same in all ranks: they begin alike
    pair = _make(
        generator_lr=generator_lr, critic_lr=critic_lr, layers=layers, width=width, noise=noise, optimizer=optimizer
    )
    state = trial.checkpoint.load()
    if state is not None:
        pair.load(state["pair"])
    best: dict[str, Any] = state["best"] if state else {METRIC: -1.0, "weights": None}

    own = np.concatenate([batch["x"] for batch in data]).astype(np.float64)
    scale = _shared_scale(own)
    rows = torch.tensor(scale(own), dtype=torch.float32)
    judged = features.training_dataset(held_out)["tune"].to_arrow()
    is_fraud, signals = judged["is_fraud"].to_numpy(), scale(signals_of(judged))

    for epoch in range(state["epoch"] if state else 0, epochs):
        torch.manual_seed(trial.seed + 1000 * epoch + trial.rank)  # ranks draw noise of their own
        _epoch(pair, rows, noise, Fakes(spread, mixed, swapped), critic_steps)
        weights = weights_of(pair.critic)
        precision = average_precision(is_fraud, Critic(weights)(signals)) if trial.rank == 0 else 0.0
        precision = trial.all_reduce(precision, "sum")
        if precision > best[METRIC]:
            best = {METRIC: precision, "weights": weights}
        saved = {"epoch": epoch + 1, "pair": pair.state(), "best": best, "scale": scale}
        trial.checkpoint.save(saved)  # rank 0 does
        trial.report(average_precision=best[METRIC], this_epoch=precision, step=epoch)
    if trial.is_distributed:
        dist.destroy_process_group()
    return {METRIC: best[METRIC]}


def detector(checkpoint: dict[str, Any], honest: np.ndarray[Any, Any]) -> Detector:
    """Return the model that a trial has left, which needs no torch."""
    scale = checkpoint["scale"]
    return Detector(scale, Critic(checkpoint["best"]["weights"]), scale(honest))


def _make(*, generator_lr: float, critic_lr: float, layers: int, width: int, noise: int, optimizer: str) -> Pair:
    kind = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[optimizer]
    options = {"betas": (0.5, 0.9)} if optimizer == "adam" else {}
    generator = _network(noise, width, layers, len(SIGNALS))
    critic = _network(len(SIGNALS), width, layers, 1)
    return Pair(
        generator,
        critic,
        kind(generator.parameters(), lr=generator_lr, **options),
        kind(critic.parameters(), lr=critic_lr, weight_decay=1e-4, **options),
    )


def _network(inputs: int, width: int, layers: int, outputs: int) -> nn.Sequential:
    sizes = [inputs, *[width] * layers]
    parts: list[Any] = []
    for before, after in itertools.pairwise(sizes):
        parts += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
    return nn.Sequential(*parts, nn.Linear(width, outputs))


def _epoch(pair: Pair, rows: torch.Tensor, noise: int, fakes: Fakes, critic_steps: int) -> None:
    """Take some steps on payments of this rank; the generator learns after each `critic_steps` steps of the critic."""
    for step in range(STEPS):
        real = rows[torch.randint(len(rows), (BATCH,))]
        with torch.no_grad():
            invented = fakes.make(pair.generator, real, noise)
        loss = (1 - pair.critic(real)).relu().mean() + (1 + pair.critic(invented)).relu().mean()
        _step(pair.critic, pair.critic_optimizer, loss)
        if step % critic_steps == 0:
            loss = -pair.critic(pair.generator(torch.randn(len(real), noise))).mean()
            _step(pair.generator, pair.generator_optimizer, loss)


def _step(network: nn.Sequential, optimizer: Any, loss: torch.Tensor) -> None:
    """Take one step, along the mean of the gradients of all ranks."""
    parameters = list(network.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    if trial.is_distributed:
        together = torch.cat([each.flatten() for each in gradients])
        dist.all_reduce(together)
        together /= trial.world_size
        gradients = together.split([each.numel() for each in parameters])
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.view_as(parameter)
    optimizer.step()


def _shared_scale(own: np.ndarray[Any, Any]) -> Scale:
    """Return one scale for all ranks: that of rank 0, whose share is drawn like those of the others."""
    scale = Scale(own)
    if trial.is_distributed:
        together = torch.tensor(np.stack([scale.mean, scale.deviation]))
        dist.broadcast(together, src=0)
        scale.mean, scale.deviation = together.numpy()
    return scale
