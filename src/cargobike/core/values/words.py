"""Words for people, the same in terminals, notebooks, reports and pages: numbers, durations, counts."""

from __future__ import annotations

MISSING = "–"
_DAY_S, _HOUR_S, _MINUTE_S = 86400, 3600, 60


def number(value: float | None) -> str:
    """Return a number with six digits that count, a missing one as a dash."""
    return MISSING if value is None else f"{value:.6g}"


def duration(seconds: float | None, *, tenths: bool = True) -> str:
    """Return a length of time in its two largest units, a missing one as a dash.

    Args:
        seconds: How long; below zero counts as zero.
        tenths: Show tenths of a second below ten seconds and round the rest; without, as a running clock does, only
            what is over counts.

    Example:
        >>> duration(8.44), duration(8.44, tenths=False), duration(125), duration(4320)
        ('8.4 s', '8 s', '2 min 05 s', '1 h 12 min')
    """
    if seconds is None:
        return MISSING
    seconds = max(0.0, seconds)
    if tenths and seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds) if tenths else int(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02d} s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02d} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S:02d} h"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 trial` or `1,200 trials`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
