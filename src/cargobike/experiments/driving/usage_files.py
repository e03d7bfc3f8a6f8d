"""Keeps what workers measure of their trials, in a file beside each trial's output."""

from __future__ import annotations

from collections import Counter

import msgspec

from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.driving.output_files import OutputFiles
from cargobike.experiments.usage import MOST_SAMPLES, DataPace, Sample
from cargobike.workers.wire.messages import Used


class UsageFiles:
    """Appends samples to files. They are no facts: nothing is decided by them, so the journal does not hold them.

    Args:
        folder: The experiment's folder.
        files: What writes.
    """

    def __init__(self, folder: ExperimentFolder, files: OutputFiles) -> None:
        self._folder = folder
        self._files = files
        self._counts: Counter[int] = Counter()

    def keep(self, message: Used, rank: int, pace: DataPace | None = None) -> None:
        """Write a sample down, with how fast rows were drawn, unless there are too many of this trial."""
        self._counts[message.task] += 1
        if self._counts[message.task] > MOST_SAMPLES:
            return
        sample = Sample(
            after_s=round(message.after_s, 2),
            cpus=None if message.processors is None else round(message.processors, 3),
            memory_bytes=max(0, message.memory_bytes),
            gpu=message.gpu,
            gpu_memory_bytes=None if message.gpu_memory_bytes is None else max(0, message.gpu_memory_bytes),
            attempt=message.attempt,
            rank=rank,
            rows_per_s=None if pace is None else round(pace.rows_per_s, 1),
            waited=None if pace is None else round(pace.waited, 4),
        )
        self._files.append(self._folder.trial(message.task).usage, msgspec.json.encode(sample) + b"\n")
