"""What `asha_real.py` searches: a function in a file of its own, which imports nothing that it does not need."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from cargobike import trial

EPOCH_S = 0.05
SLOWER = 5


def train(number: int, curves: list[list[float]], mark: str) -> float:
    """Follow a curve; the first worker that comes marks itself as the slow one."""
    me = str(os.getppid())
    with contextlib.suppress(FileExistsError), Path(mark).open("x") as file:
        file.write(me)
    epoch_s = EPOCH_S * (SLOWER if Path(mark).read_text() == me else 1)
    for epoch in range(trial.checkpoint.load(0), len(curves[number])):
        time.sleep(epoch_s)
        trial.checkpoint.save(epoch + 1)
        trial.report(accuracy=curves[number][epoch], step=epoch)
    return curves[number][-1]
