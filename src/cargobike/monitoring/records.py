"""What a judgement consists of: plain data."""

from __future__ import annotations

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One statistic of one subject.

    Attributes:
        value: How large it is.
        probability: In which part of windows without a shift *anything* is as unusual as this: corrected for all
            columns and all statistics.
    """

    value: float
    probability: float


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """A column on one side: in the reference, or now.

    Attributes:
        rows: How many rows.
        missing: The share of rows without a value; NaN counts as none.
        distinct: About how many different values there are.
        mean: The mean of its numbers; `None` for categories and columns without numbers, as are all that follow.
        deviation: Their standard deviation.
        lowest: The lowest of them.
        highest: The highest.
        infinite: How many values are infinite; they are in the first or last bin, and not in the mean.
        shares: The share of each bin or category among the rows that have a value.
    """

    rows: int
    missing: float
    distinct: int
    mean: float | None
    deviation: float | None
    lowest: float | None
    highest: float | None
    infinite: int
    shares: tuple[float, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A column in the reference and now.

    Attributes:
        name: The column.
        type: Arrow's type in the reference.
        labels: What each of `shares` is: the beginning of a bin, or a category.
        reference: The column in the reference.
        now: The column in the window.
        unseen: Categories that the reference does not have, with their numbers of rows; some of them if there are many.
    """

    name: str
    type: str
    labels: tuple[str, ...]
    reference: Side
    now: Side
    unseen: dict[str, int]


class Shift(msgspec.Struct, frozen=True, kw_only=True):
    """A column, or a pair of columns, that moved.

    Attributes:
        feature: The column, or `one × other` for a pair whose correlation changed.
        statistic: The statistic that shows it best.
        size: Its value.
        probability: In which part of windows without a shift anything is as unusual.
        is_certain: Whether this alone is an alarm. If not, all columns together are one, and this is one that
            contributes most.
    """

    feature: str
    statistic: str
    size: float
    probability: float
    is_certain: bool = True


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about a window; `Judgement` is the same with words for people."""

    alarm: bool
    probability: float
    false_alarms: float
    rows: int
    reference_rows: int
    calibrated_rows: int
    features: tuple[Shift, ...]
    statistics: dict[str, dict[str, Figure]]
    columns: tuple[Comparison, ...]
    ignored: tuple[str, ...] = ()
