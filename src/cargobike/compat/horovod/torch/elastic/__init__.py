"""`horovod.torch.elastic`: training that goes on while ranks come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cargobike.compat.horovod.common.basics import init, shutdown
from cargobike.compat.horovod.common.elastic import ObjectState, State, run_fn
from cargobike.compat.horovod.torch.elastic.sampler import ElasticSampler
from cargobike.compat.horovod.torch.elastic.state import TorchState
from cargobike.compat.noticing import notice

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]

_R = TypeVar("_R")


def run(func: Callable[..., _R]) -> Callable[..., _R]:
    """Make a function of a state one that goes on with the ranks that are there.

    A rank that is lost costs what was done since the last `state.commit()`; ranks that come or have to go cost nothing.
    Ranks come and go under `horovodrun --min-np`, `horovod.run(min_num_proc=…)` and `horovod.spark.run_elastic`;
    elsewhere the function is called once.
    """
    notice("horovod.torch.elastic.run")
    return run_fn(func, _join_again)


def _join_again() -> None:
    shutdown()
    init()
