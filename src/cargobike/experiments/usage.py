"""What the processes of a trial used over time: the samples in its folder, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from cargobike.core.plain_files import open_plain
from cargobike.core.values.undecodable import UNDECODABLE

MOST_SAMPLES = 20_000
"""How many samples of one trial are kept, however often it is tried and whatever a worker sends."""
_LARGEST = 16 << 20


class DataPace(msgspec.Struct, frozen=True):
    """How fast rows are drawn, and which share of its time, from 0 to 1, training waits for them."""

    rows_per_s: float
    waited: float

    def __str__(self) -> str:
        return f"{_count(self.rows_per_s)} rows/s, {self.waited:.0%} of the time waiting"


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the processes of one rank used at a moment.

    Attributes:
        after_s: Seconds since the attempt began.
        cpus: How many processors were busy since the sample before; `None` if that is not known.
        memory_bytes: Memory that the processes hold.
        gpu: How busy the busiest GPU is, from 0 to 1; `None` without one.
        gpu_memory_bytes: Memory in use on the GPUs; `None` without one.
        attempt: Which attempt of the trial.
        rank: Which rank of a gang.
        rows_per_s: How fast it drew rows of its data; `None` if it drew none.
        waited: Which share of the time it waited for them, from 0 to 1.
    """

    after_s: float
    cpus: float | None
    memory_bytes: int
    gpu: float | None = None
    gpu_memory_bytes: int | None = None
    attempt: int = 1
    rank: int = 0
    rows_per_s: float | None = None
    waited: float | None = None


class Usage:
    """What a trial used: `samples`, and what they add up to. True if there are any."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = list(samples)

    @property
    def ranks(self) -> list[int]:
        """The ranks that were measured."""
        return sorted({sample.rank for sample in self.samples})

    def of_rank(self, rank: int) -> Usage:
        """Return what one rank of a gang used."""
        return Usage([sample for sample in self.samples if sample.rank == rank])

    @property
    def peak_memory_bytes(self) -> int | None:
        """The most memory that one rank was seen with."""
        return max((sample.memory_bytes for sample in self.samples), default=None)

    @property
    def mean_cpus(self) -> float | None:
        """How many processors it kept busy on average, all ranks together."""
        means = [mean for rank in self.ranks if (mean := self._mean(rank, lambda one: one.cpus)) is not None]
        return sum(means) if means else None

    @property
    def mean_gpu(self) -> float | None:
        """How busy its GPUs were on average, from 0 to 1."""
        values = [sample.gpu for sample in self.samples if sample.gpu is not None]
        return sum(values) / len(values) if values else None

    @property
    def peak_gpu_memory_bytes(self) -> int | None:
        """The most memory that was in use on the GPUs of one rank."""
        return max((one.gpu_memory_bytes for one in self.samples if one.gpu_memory_bytes is not None), default=None)

    @property
    def data_pace(self) -> DataPace | None:
        """How fast its ranks drew rows together, and which share of their time they waited for them, on average."""
        rates = [rate for rank in self.ranks if (rate := self._mean(rank, lambda one: one.rows_per_s)) is not None]
        shares = [share for rank in self.ranks if (share := self._mean(rank, lambda one: one.waited)) is not None]
        return DataPace(sum(rates), sum(shares) / len(shares)) if rates and shares else None

    def _mean(self, rank: int, read: Callable[[Sample], float | None]) -> float | None:
        """Weigh each sample with the time since the one before it in the same attempt."""
        total = passed_s = 0.0
        before: dict[int, float] = {}
        for sample in self.samples:
            if sample.rank != rank:
                continue
            span_s = sample.after_s - before.get(sample.attempt, 0.0)
            before[sample.attempt] = sample.after_s
            value = read(sample)
            if value is not None and span_s > 0:
                total += value * span_s
                passed_s += span_s
        return total / passed_s if passed_s else None

    def __bool__(self) -> bool:
        return bool(self.samples)

    def __repr__(self) -> str:
        if not self.samples:
            return "Usage(no samples)"
        return f"Usage({in_words(self)}, {len(self.samples)} samples)"


def read_usage(path: Path) -> Usage:
    """Read the samples of a trial; lines that are damaged, or not complete yet, are left out."""
    try:
        with open_plain(path) as file:
            lines = file.read(_LARGEST).splitlines()
    except OSError:
        return Usage([])
    samples = []
    for line in lines[:MOST_SAMPLES]:
        try:
            samples.append(_decoder.decode(line))
        except UNDECODABLE:
            continue
    return Usage(samples)


def in_words(usage: Usage) -> str:
    """Return in a few words what was used.

    Example:
        >>> in_words(Usage([Sample(1.0, 0.5, 2_000_000)]))
        '0.5 CPUs, 2 MB'
    """
    words = []
    if usage.mean_cpus is not None:
        words.append(f"{usage.mean_cpus:.3g} CPUs")
    if usage.peak_memory_bytes is not None:
        words.append(_size(usage.peak_memory_bytes))
    if usage.mean_gpu is not None:
        words.append(f"GPU {usage.mean_gpu:.0%}")
    if usage.peak_gpu_memory_bytes is not None:
        words.append(f"{_size(usage.peak_gpu_memory_bytes)} on GPUs")
    if usage.data_pace is not None:
        words.append(str(usage.data_pace))
    return ", ".join(words)


def _count(number: float) -> str:
    """Return a number with three digits that count."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def _size(number: int) -> str:
    return f"{number / 1e9:.3g} GB" if number >= 1e9 else f"{number / 1e6:.3g} MB"


_decoder = msgspec.json.Decoder(Sample)
