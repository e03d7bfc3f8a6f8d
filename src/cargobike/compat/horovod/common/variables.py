"""The variables by which ranks of Horovod know themselves, set in each rank."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

ELASTIC: Final = "HOROVOD_ELASTIC"
"""Set in ranks that may come and go."""

_TWINS: Final = {
    "HOROVOD_RANK": "RANK",
    "HOROVOD_SIZE": "WORLD_SIZE",
    "HOROVOD_LOCAL_RANK": "LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE": "LOCAL_WORLD_SIZE",
    "HOROVOD_CROSS_RANK": "GROUP_RANK",
    "HOROVOD_CROSS_SIZE": "GROUP_WORLD_SIZE",
}
"""Horovod's names, and what a gang finds in its environment."""


def rank_variables(gang: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of Horovod for a rank that finds the variables of a gang in its environment.

    Example:
        >>> rank_variables({"RANK": "1", "WORLD_SIZE": "2"})["HOROVOD_RANK"]
        '1'
    """
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    known = {**alone, "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", **gang}
    variables = {name: known[twin] for name, twin in _TWINS.items()}
    return {**variables, "HOROVOD_HOSTNAME": gang.get("HOROVOD_HOSTNAME") or socket.gethostname()}


def set_rank_variables() -> None:
    """Set the variables of Horovod in this process."""
    os.environ.update(rank_variables(os.environ))
