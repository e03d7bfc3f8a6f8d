"""What happens to samples that do not divide evenly among ranks: the policy, and the arithmetic behind it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal, TypeVar

from cargobike.core.errors import InvalidInputError, nearest

Policy = Literal["drop", "pad", "join"]
POLICIES: tuple[Policy, ...] = ("drop", "pad", "join")

MEANINGS: dict[Policy, str] = {
    "drop": "every rank gets equally many; the few that are left over are not used in that epoch",
    "pad": "every rank gets equally many; the few that are missing are taken twice in that epoch",
    "join": "every sample is used once; ranks that have none left keep answering the others until those are done",
}

Item = TypeVar("Item")


def choose_policy(
    asked: str,
    *,
    is_stream: bool,
    trains: bool,
    shuffles: bool,
    can_join: bool,
    accumulate: int = 1,
    waits: bool = True,
) -> Policy:
    """Return the policy to use; with `auto` the one that cannot hang and distorts least.

    Training data is padded, so that no sample is left out. A loader that stands alone and keeps its order is one for
    validation, where a sample that counts twice makes the metric wrong: there every sample is used once. Of streams
    the length is not known, so what is left over at the end is dropped.

    Raises:
        InvalidInputError: If there is no such policy, or the strategy cannot follow it.
    """
    if asked != "auto" and asked not in POLICIES:
        raise InvalidInputError(
            f"uneven must be one of auto, {', '.join(POLICIES)}, not {asked!r}.{nearest(str(asked), POLICIES)}"
        )
    if asked == "join" and trains and not can_join:
        raise InvalidInputError(
            "uneven='join' needs strategy 'ddp' or 'zero1', whose collectives a rank without data can answer; "
            "with the others every rank must take equally many steps: use 'drop' or 'pad'."
        )
    if asked == "join" and trains and accumulate > 1 and waits:
        raise InvalidInputError(
            f"uneven='join' and accumulate={accumulate} do not go together: ranks that end at different batches would "
            "exchange gradients at different ones. Use uneven='pad' or 'drop'."
        )
    if asked in POLICIES:
        return asked
    if is_stream:
        return "drop"
    return "pad" if trains or shuffles else "join"


def take_share(
    items: Sequence[Item], rank: int, world_size: int, policy: Policy, filler: Sequence[Item] | None = None
) -> list[Item]:
    """Return the items of one rank: every `world_size`-th, evened out as the policy says.

    What is missing is taken from the beginning of `filler`; of the items themselves, if left out.

    Example:
        >>> [take_share("abcde", rank, 2, "drop") for rank in (0, 1)]
        [['a', 'c'], ['b', 'd']]
        >>> [take_share("abcde", rank, 2, "pad") for rank in (0, 1)]
        [['a', 'c', 'e'], ['b', 'd', 'a']]
    """
    if policy == "drop":
        return list(items[rank : len(items) - len(items) % world_size : world_size])
    share = list(items[rank::world_size])
    if policy == "pad" and len(share) < share_length(len(items), rank, world_size, "pad"):
        missing = -len(items) % world_size
        position = rank - (world_size - missing)
        share.append(next(itertools.islice(itertools.cycle(filler or items), position, None)))
    return share


def share_length(length: int, rank: int, world_size: int, policy: Policy) -> int:
    """Return how many items `take_share` gives to one rank."""
    if policy == "drop":
        return length // world_size
    if policy == "pad":
        return -(-length // world_size)
    return max(0, -(-(length - rank) // world_size))
