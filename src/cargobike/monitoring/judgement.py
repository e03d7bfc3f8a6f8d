"""What is said about a window: whether it is an alarm, which columns moved and how far, and every figure."""

from __future__ import annotations

from cargobike.monitoring.records import Judged
from cargobike.monitoring.showing.notebook import as_html
from cargobike.monitoring.showing.text import as_text


class Judgement(Judged, frozen=True, kw_only=True):
    """What is said about a window: plain data, which can be stored.

    Attributes:
        alarm: Whether the window is unusual.
        probability: In which part of windows without a shift anything is as unusual as here; an alarm if that is at
            most `false_alarms`.
        false_alarms: The rate of false alarms that was asked for.
        rows: How many rows the window has.
        reference_rows: How many rows the reference has.
        calibrated_rows: The size of the windows that it was compared with.
        features: The columns that moved, the most unusual one first; empty if there is no alarm.
        statistics: Every figure, by statistic and then by column, pair of columns, or `all columns`.
        columns: Every column in the reference and now.
        ignored: Columns of the window that the reference does not have, or does not judge.
    """

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)
