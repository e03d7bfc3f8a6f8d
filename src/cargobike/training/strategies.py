"""The ways to train one model with a gang, as small records: what may be given as `strategy` and `compression`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cargobike.core.errors import InvalidInputError, nearest


@dataclass(frozen=True, slots=True)
class DDP:
    """Every rank holds the whole model; gradients are averaged while they are computed."""

    find_unused_parameters: bool = False
    bucket_mb: int = 25


@dataclass(frozen=True, slots=True)
class Zero1:
    """Like `DDP`, with the optimizer's state divided among the ranks."""

    find_unused_parameters: bool = False
    bucket_mb: int = 25


@dataclass(frozen=True, slots=True)
class FSDP:
    """Parameters, gradients and optimizer state are divided among the ranks, and gathered layer by layer."""

    min_parameters: int = 100_000
    """Sub-modules with at least so many parameters are gathered on their own; the rest together with the whole."""


@dataclass(frozen=True, slots=True)
class LocalSGD:
    """Ranks train alone and average their models every `sync_every` steps."""

    sync_every: int = 10


@dataclass(frozen=True, slots=True)
class DiLoCo:
    """Ranks train alone; every `sync_every` steps an outer optimizer (Nesterov) follows the mean of where they went."""

    sync_every: int = 50
    outer_lr: float = 0.7
    outer_momentum: float = 0.9


@dataclass(frozen=True, slots=True)
class ParameterServer:
    """Servers hold the parameters; each rank pushes gradients and pulls parameters without waiting for the others."""


Strategy = DDP | Zero1 | FSDP | LocalSGD | DiLoCo | ParameterServer
STRATEGIES: Mapping[str, type[Strategy]] = {
    "ddp": DDP,
    "zero1": Zero1,
    "fsdp": FSDP,
    "local_sgd": LocalSGD,
    "diloco": DiLoCo,
    "parameter_server": ParameterServer,
}


@dataclass(frozen=True, slots=True)
class Cast:
    """Send numbers of 16 bits: `bf16` or `fp16`."""

    kind: str


@dataclass(frozen=True, slots=True)
class PowerSGD:
    """Send matrices as products of two thin ones, with error feedback; the first steps are sent whole."""

    rank: int = 2
    start_step: int = 10


@dataclass(frozen=True, slots=True)
class TopK:
    """Send only the largest entries, and remember the rest for the next time (error feedback)."""

    ratio: float = 0.01


Compression = Cast | PowerSGD | TopK
COMPRESSIONS: Mapping[str, Compression] = {
    "bf16": Cast("bf16"),
    "fp16": Cast("fp16"),
    "powersgd": PowerSGD(),
    "topk": TopK(),
}


def read_strategy(given: Any, sync_every: int | None = None) -> Strategy:
    """Return the strategy that a name or a record stands for.

    Raises:
        InvalidInputError: If there is no such thing, or a number is out of range.

    Example:
        >>> read_strategy("diloco", sync_every=20)
        DiLoCo(sync_every=20, outer_lr=0.7, outer_momentum=0.9)
    """
    if isinstance(given, str) and given in STRATEGIES:
        strategy = STRATEGIES[given]()
    elif isinstance(given, Strategy):
        strategy = given
    else:
        raise InvalidInputError(
            f"strategy must be one of {', '.join(STRATEGIES)}, or a record such as DiLoCo(sync_every=50), not "
            f"{given!r}.{nearest(str(given), STRATEGIES)}"
        )
    if sync_every is not None:
        if not isinstance(strategy, LocalSGD | DiLoCo):
            raise InvalidInputError(f"sync_every is for 'local_sgd' and 'diloco'; strategy is {name_of(strategy)!r}.")
        strategy = replace(strategy, sync_every=sync_every)
    if isinstance(strategy, LocalSGD | DiLoCo) and strategy.sync_every < 1:
        raise InvalidInputError(f"sync_every must be at least 1, not {strategy.sync_every}.")
    return strategy


def name_of(strategy: Strategy) -> str:
    """Return the short name of a strategy."""
    return next(name for name, kind in STRATEGIES.items() if type(strategy) is kind)


def read_compression(given: Any, strategy: Strategy) -> Compression | None:
    """Return the compression that a name or a record stands for, or None.

    Raises:
        InvalidInputError: If there is no such thing, or the strategy cannot use it.
    """
    if given is None or given == "none":
        return None
    if isinstance(strategy, ParameterServer):
        raise InvalidInputError(
            "With 'parameter_server' compression is an option of experiment.parameter_server, for all workers alike."
        )
    compression = COMPRESSIONS.get(given) if isinstance(given, str) else given
    if not isinstance(compression, Cast | PowerSGD | TopK):
        raise InvalidInputError(
            f"compression must be one of {', '.join(COMPRESSIONS)}, or a record such as TopK(ratio=0.01), not "
            f"{given!r}.{nearest(str(given), COMPRESSIONS)}"
        )
    if isinstance(compression, TopK) and not 0 < compression.ratio <= 1:
        raise InvalidInputError(f"TopK's ratio must be above 0 and at most 1, not {compression.ratio}.")
    if isinstance(strategy, FSDP):
        raise InvalidInputError("compression works with 'ddp', 'zero1', 'local_sgd' and 'diloco', not with 'fsdp'.")
    if isinstance(strategy, LocalSGD | DiLoCo) and not isinstance(compression, Cast):
        raise InvalidInputError(f"With {name_of(strategy)!r} compression may be 'bf16' or 'fp16'.")
    return compression
