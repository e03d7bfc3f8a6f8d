"""`init` in a job whose ranks come and go: the launcher says who is there, then they meet as usual."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Final

import torch.distributed as dist

from cargobike.compat.horovod.common.variables import rank_variables
from cargobike.core.errors import WaitError
from cargobike.training import process_group
from cargobike.training.process_group import Group
from cargobike.training.regrouping.member import Regrouping, regrouping_member

MEETING_S: Final = 30.0
"""How long ranks that the launcher has just named may take to meet; then those that are left are asked for again."""


def meet_regrouped(on_broken: Callable[[str], None] | None) -> Group | None:
    """Meet the ranks that are there now; `None` in a job whose ranks stay.

    Args:
        on_broken: Called, in a thread of its own, when one of them is lost.
    """
    here = regrouping_member()
    if here is None:
        return None
    while True:
        here.meet()
        os.environ.update(rank_variables(_variables(here)))
        here.on_broken = on_broken
        with contextlib.suppress(WaitError, RuntimeError, dist.DistError):
            return process_group.meet(MEETING_S)


def _variables(here: Regrouping) -> dict[str, str]:
    hosts = list(dict.fromkeys(here.hosts))
    return {
        "RANK": str(here.rank),
        "WORLD_SIZE": str(here.world_size),
        "LOCAL_RANK": str(here.local_rank),
        "LOCAL_WORLD_SIZE": str(here.local_world_size),
        "GROUP_RANK": str(hosts.index(here.hosts[here.rank])),
        "GROUP_WORLD_SIZE": str(len(hosts)),
    }
