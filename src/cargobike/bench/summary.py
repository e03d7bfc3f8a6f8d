"""What a benchmark says in words: the lines that are printed as it runs, and one row for each run."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Final

from cargobike.bench.cases import WAYS, Outcome, Way
from cargobike.bench.running import Settings
from cargobike.core.version import __version__

LINE: Final = "-" * 64
STEP_HEADING: Final = f"{'Step':<8}{'Img/sec':<52}loss"
HEADINGS: Final = (
    ("model", False),
    ("way", False),
    ("workers", True),
    ("images/s", True),
    ("± error", True),
    ("jitter", True),
    ("step", True),
    ("communication", True),
    ("sent per step", True),
    ("mean delay", True),
    ("dropped", True),
    ("loss", True),
)
"""The columns of the summary, and whether they are numbers."""


def step_line(step: int, found: Mapping[str, float]) -> str:
    """Return the line that is printed at a step.

    Example:
        >>> step_line(10, {"mean": 2997.14, "uncertainty": 12.4, "jitter": 4.3, "loss": 0.5123})
        '10      images/sec: 2997.1 +/- 12.4 (jitter = 4.3)          0.512'
    """
    speed = f"images/sec: {found['mean']:.1f} +/- {found['uncertainty']:.1f} (jitter = {found['jitter']:.1f})"
    return f"{step:<8}{speed:<52}{found['loss']:.3f}"


def total_line(outcome: Outcome) -> str:
    """Return the line that is printed at the end of a run."""
    return f"total images/sec: {outcome.images_per_s:.2f}"


def row_of(outcome: Outcome) -> tuple[str, ...]:
    """Return one run as a row under `HEADINGS`."""
    case = outcome.case
    is_shared = case.way != Way.ONE
    return (
        case.model,
        WAYS[case.way],
        str(case.workers),
        f"{outcome.images_per_s:,.0f}",
        f"{outcome.uncertainty:,.0f}",
        f"{outcome.jitter:,.0f}",
        f"{1000 * outcome.step_s:.1f} ms",
        f"{outcome.communication:.0%}" if is_shared else "–",
        f"{outcome.sent_bytes / 1e6:.1f} MB" if is_shared else "–",
        "–" if outcome.delay is None else f"{outcome.delay:.2f}",
        "–" if outcome.dropped is None else str(outcome.dropped),
        f"{outcome.loss:.4f}",
    )


def facts_of(settings: Settings) -> dict[str, object]:
    """Return where and how it was measured."""
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "cargobike": __version__,
        "engine": settings.engine,
        "steps": f"{settings.steps}, after {settings.warmup} to warm up",
        "batch": f"{settings.batch} rows in each worker",
        "threads": f"{settings.threads} in each worker",
        "parameter servers": f"{settings.servers}; async: staleness {settings.staleness}",
        "local SGD": f"exchange every {settings.sync_every} steps",
    }
