"""What may be said about parameter servers, checked without torch: at the front door, and again in each worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.times import read_seconds

CODECS = ("none", "fp16", "bf16", "int8", "topk")
DEFAULTS: Mapping[str, Any] = {
    "staleness": None,
    "on_stale": "drop",
    "warmup_steps": 0,
    "scale_by_delay": False,
    "compression": None,
    "parameter_compression": None,
    "timeout_s": 300.0,
    "checkpoint_every_s": 30.0,
}
"""Every option, with what holds if it is left out."""


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options, those left out with their defaults.

    Raises:
        InvalidInputError: Names every option that does not exist or has a value that cannot be used.

    Example:
        >>> check_options({"staleness": 8})["on_stale"]
        'drop'
    """
    chosen = {**DEFAULTS, **options}
    mistakes = [
        f"there is no option {name!r}; there are {', '.join(DEFAULTS)}.{nearest(name, DEFAULTS)}"
        for name in options
        if name not in DEFAULTS
    ]
    if chosen["staleness"] is not None and not _is_count(chosen["staleness"]):
        mistakes.append(f"staleness must be None or a whole number of at least 0, not {chosen['staleness']!r}")
    if chosen["on_stale"] not in ("drop", "wait"):
        mistakes.append(f"on_stale must be 'drop' or 'wait', not {chosen['on_stale']!r}")
    if not _is_count(chosen["warmup_steps"]):
        mistakes.append(f"warmup_steps must be a whole number of at least 0, not {chosen['warmup_steps']!r}")
    for name in ("timeout_s", "checkpoint_every_s"):
        try:
            seconds = read_seconds(name, chosen[name])
        except InvalidInputError as error:
            mistakes.append(str(error))
        else:
            chosen[name] = DEFAULTS[name] if seconds is None else seconds
    for name, for_parameters in (("compression", False), ("parameter_compression", True)):
        try:
            read_codec(chosen[name], for_parameters=for_parameters)
        except InvalidInputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError("Parameter servers cannot use what was given:", mistakes)
    return chosen


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def read_codec(given: str | None, *, for_parameters: bool = False) -> tuple[str, float]:
    """Return the codec's name and, for `topk` or `topk:0.05`, the share that is sent.

    Raises:
        InvalidInputError: If there is no such codec, or it cannot be used for parameters.

    Example:
        >>> read_codec("topk:0.05")
        ('topk', 0.05)
    """
    name, _, share = str(given or "none").partition(":")
    choices = CODECS[:-1] if for_parameters else CODECS
    if name not in choices:
        what = "parameter_compression" if for_parameters else "compression"
        raise InvalidInputError(f"{what} must be one of {', '.join(choices)}, not {given!r}.{nearest(name, choices)}")
    try:
        ratio = float(share) if share else 0.01
    except ValueError:
        ratio = 0.0
    if not 0 < ratio <= 1 or (share and name != "topk"):
        raise InvalidInputError(f"compression {given!r} is not understood; a share is written as 'topk:0.05'.")
    return name, ratio
