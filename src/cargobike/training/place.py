"""Which rank of which gang this process is, as `torchrun` and our own runners write it in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from cargobike.core.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Place:
    """A rank's place in its gang: rank 0 of 1 outside any."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    meeting: str = ""
    """What tells this gang from an earlier one in the same process: address and attempt."""


def find_place(variables: Mapping[str, str] | None = None) -> Place:
    """Read the place from the variables of `torchrun`.

    Raises:
        InvalidInputError: If some of the variables are missing, or no whole numbers, or contradict each other.

    Example:
        >>> find_place({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}).rank
        1
    """
    known = os.environ if variables is None else variables
    if "WORLD_SIZE" not in known and "RANK" not in known:
        return Place()
    mistakes = []
    numbers = {"LOCAL_RANK": 0}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        if name not in known:
            if name != "LOCAL_RANK":
                mistakes.append(f"{name} is not set")
            continue
        try:
            numbers[name] = int(known[name])
        except ValueError:
            mistakes.append(f"{name} must be a whole number, not {known[name]!r}")
    if not mistakes and not 0 <= numbers["RANK"] < numbers["WORLD_SIZE"]:
        mistakes.append(f"RANK {numbers['RANK']} is not below WORLD_SIZE {numbers['WORLD_SIZE']}")
    if not mistakes and numbers["WORLD_SIZE"] > 1:
        mistakes += [f"{name} is not set" for name in ("MASTER_ADDR", "MASTER_PORT") if name not in known]
    if mistakes:
        raise InvalidInputError(
            "This process cannot find its gang: the variables that torchrun sets are incomplete.", mistakes
        )
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    meeting = " ".join(known.get(name, "-") for name in names)
    return Place(numbers["RANK"], numbers["WORLD_SIZE"], numbers["LOCAL_RANK"], meeting)
