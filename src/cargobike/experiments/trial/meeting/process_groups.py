"""Process groups of torch outlive the code that made them, and those of one program do not meet each other.

torch's gloo group joins its threads when it is destroyed. When the last reference to it goes away with a model that was
wrapped in DistributedDataParallel, that happens while the interpreter's lock is held, and a thread that is being joined
may be waiting for this lock: the process hangs for ever. It cannot happen as long as there is a reference to the
group. So the runner holds every group that is made, and leaves without destroying anything.

A program may destroy its default group and make another one. torch calls both by the same name and looks for the ranks
of the second one where those of the first were: a rank that is early finds addresses that are no longer true, and waits
for ever, under `torchrun` too. So every default group after the first one has a part of the store of its own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import Counter
from types import ModuleType
from typing import Any

from cargobike.experiments.trial.meeting.later import when_imported

_MODULE = "torch.distributed.distributed_c10d"
_MAKER = "_new_process_group_helper"
_kept: list[Any] = []
_made: Counter[int] = Counter()
"""How many default groups were made, by their size: ranks that are not in all of them still count alike."""


def keep_process_groups() -> bool:
    """Hold every process group that will be made; returns whether torch is loaded already and can make any."""
    when_imported(_MODULE, _keep_those_of)
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available()


def _keep_those_of(module: ModuleType) -> None:
    make = getattr(module, _MAKER, None)
    if make is None or hasattr(make, "__wrapped__"):
        return
    signature = inspect.signature(make)

    @functools.wraps(make)
    def make_and_keep(*args: Any, **options: Any) -> Any:
        call = signature.bind(*args, **options)
        is_default, size = not call.arguments.get("global_ranks_in_group"), call.arguments.get("group_size", 0)
        if is_default and _made[size] and "store" in call.arguments:
            call.arguments["store"] = module.PrefixStore(f"again/{_made[size]}", call.arguments["store"])
        made = make(*call.args, **call.kwargs)
        _made[size] += is_default
        _kept.append(made)
        return made

    setattr(module, _MAKER, make_and_keep)


def keep_existing_groups() -> None:
    """Hold the groups that exist: those of a torch that makes them in another way."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        _kept.extend(sys.modules[_MODULE]._world.pg_map)
